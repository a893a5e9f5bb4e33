import { createYielder } from "../../async/event-loop.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { Item, Items } from "../contract.ts";
import type { Guide, GuideChannel } from "./guide-contract.ts";

interface GuideReviewDependencies {
  readonly items: Pick<Items, "read" | "figures">;
  readonly guide: Pick<Guide, "match" | "candidates" | "isChosen" | "hasProgrammes">;
  readonly clock: Clock;
}

/** A channel of the playlist whose channel in the guides is uncertain. */
export interface UncertainChannel {
  readonly item: Item;
  /** The channel that is used because its name is similar; undefined if none is used. */
  readonly used: GuideChannel | undefined;
  /** The channels of the guides that resemble it most, best first. */
  readonly candidates: readonly GuideChannel[];
}

export interface GuideReview {
  readonly channels: readonly UncertainChannel[];
  /** Of all uncertain channels, also of those that are not listed. */
  readonly count: number;
}

/** More than a user corrects at once. */
const MAX_LISTED = 100;
const MAX_CANDIDATES = 3;

/**
 * Lists the enabled live channels for which no channel of the guides fits for certain, or only one with a similar name, so that the user
 * can choose. Channels for which the user has chosen are left out, and so is everything if no guide has programmes.
 */
export async function reviewGuide({ items, guide, clock }: GuideReviewDependencies): Promise<GuideReview> {
  const yieldIfDue = createYielder(clock);
  const channels: UncertainChannel[] = [];
  const seen = new Set<string>();
  if (!guide.hasProgrammes) return { channels, count: 0 };
  const reader = items.read({ isEnabled: true, sort: "added" });
  for (let some = await reader.next(); some.length > 0; some = await reader.next())
    for (const item of some) {
      await yieldIfDue();
      if (item.isLive === 0 || guide.isChosen(item)) continue;
      const match = guide.match(item);
      if (match !== undefined && match.reason !== "similar") continue;
      const { hash } = items.figures(item);
      if (seen.has(hash)) continue;
      seen.add(hash);
      if (channels.length >= MAX_LISTED) continue;
      const candidates = guide.candidates(item, "").slice(0, MAX_CANDIDATES);
      channels.push({ item, used: match?.channel, candidates });
    }
  return { channels, count: seen.size };
}
