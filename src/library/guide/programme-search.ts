import { createYielder } from "../../async/event-loop.ts";
import { after } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { Item, Items } from "../contract.ts";
import { foldText } from "../item-names.ts";
import type { Guide, Programme } from "./guide-contract.ts";

interface ProgrammeSearchDependencies {
  readonly items: Pick<Items, "read">;
  readonly guide: Pick<Guide, "match" | "search">;
  readonly clock: Clock;
}

/** A programme and the item that shows it. */
export interface FoundProgramme {
  readonly item: Item;
  readonly programme: Programme;
}

/** The result of a search for programmes. */
export interface FoundProgrammes {
  /** The earliest first. */
  readonly found: readonly FoundProgramme[];
  /** False if there are more matches, if the search took too long, or if a guide cannot be read. */
  readonly isComplete: boolean;
}

/** Matches of one search. */
const MAX_FOUND = 100;
/** A search ends after this time, because the user waits for it. */
const MAX_SEARCH_MS = 8_000;

/**
 * Searches the present and later programmes of the enabled items for a text in their titles and subtitles; case and accents are
 * ignored. Of several items of one channel, the first is returned.
 */
export async function searchProgrammes(
  { items, guide, clock }: ProgrammeSearchDependencies,
  query: string,
): Promise<FoundProgrammes> {
  const part = foldText(query.trim());
  if (part === "") return { found: [], isComplete: true };
  const yieldIfDue = createYielder(clock);
  const end = after(clock.now(), MAX_SEARCH_MS);
  const byKey = new Map<string, Item>();
  const reader = items.read({ isEnabled: true, sort: "added" });
  for (let some = await reader.next(); some.length > 0; some = await reader.next())
    for (const item of some) {
      await yieldIfDue();
      if (clock.now() >= end) return { found: [], isComplete: false };
      const key = guide.match(item)?.channel.key;
      if (key !== undefined && !byKey.has(key)) byKey.set(key, item);
    }
  let found: FoundProgramme[] = [];
  let isComplete = true;
  for await (const some of guide.search([...byKey.keys()], part, clock.unixSeconds())) {
    await yieldIfDue();
    if (some === undefined) isComplete = false;
    for (const { key, programme } of some ?? []) found.push({ item: byKey.get(key)!, programme });
    if (found.length > MAX_FOUND) {
      found = earliest(found);
      isComplete = false;
    }
    if (clock.now() >= end) return { found: earliest(found), isComplete: false };
  }
  return { found: earliest(found), isComplete };
}

function earliest(found: FoundProgramme[]): FoundProgramme[] {
  return found.sort((a, b) => a.programme.start - b.programme.start).slice(0, MAX_FOUND);
}
