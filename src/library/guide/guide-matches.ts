import { followRecords } from "../../async/records.ts";
import { SluiceError } from "../../base/errors.ts";
import { trimOldest } from "../../base/trim-oldest.ts";
import type { KeyValueStore } from "../../runtime/contract.ts";
import type { Item, Items } from "../contract.ts";
import { contentName } from "../item-figures.ts";
import { ChannelMatcher } from "./channel-matcher.ts";
import type { GuideChannel, GuideMatch } from "./guide-contract.ts";

const CHOICES = "guide/choice/";
const MAX_CHOICES = 20_000;
/** Matches that are kept; more than any list that is shown. */
const MAX_MATCHES = 100_000;
const MAX_CANDIDATES = 20;

interface MatchDependencies {
  readonly store: KeyValueStore;
  readonly items: Pick<Items, "figures">;
}

/** Which channel of the guides an item has: the user's choice, or what {@link ChannelMatcher} finds. */
export class GuideMatches {
  readonly #parts: MatchDependencies;
  /** The user's choices by the hash of the channel's name: the key of a channel, or null for no guide. */
  readonly #choices = new Map<string, string | null>();
  /** By {@link matchKey}; null: no channel. */
  readonly #matches = new Map<string, GuideMatch | null>();
  #listed: () => Iterable<GuideChannel> = () => [];
  #channels: ReadonlyMap<string, GuideChannel> | undefined;
  #matcher: ChannelMatcher | undefined;

  private constructor(parts: MatchDependencies) {
    this.#parts = parts;
  }

  /** Loads the choices. */
  static async load(parts: MatchDependencies): Promise<GuideMatches> {
    const matches = new GuideMatches(parts);
    for await (const [key, value] of parts.store.list(CHOICES))
      if (typeof value === "string" || value === null) matches.#choices.set(key.slice(CHOICES.length), value);
    followRecords(parts.store, CHOICES, (key, value) => {
      if (typeof value === "string" || value === null) matches.#choices.set(key.slice(CHOICES.length), value);
      else matches.#choices.delete(key.slice(CHOICES.length));
      matches.#matches.clear();
    });
    return matches;
  }

  /** All channels by their keys. */
  get channels(): ReadonlyMap<string, GuideChannel> {
    this.#channels ??= new Map([...this.#listed()].map((channel) => [channel.key, channel]));
    return this.#channels;
  }

  /** The guides have other channels from now on: those of `list`, in the order of priority. */
  useChannels(list: () => Iterable<GuideChannel>): void {
    this.#listed = list;
    this.#channels = undefined;
    this.#matcher = undefined;
    this.#matches.clear();
  }

  of(item: Item): GuideMatch | undefined {
    const key = matchKey(item);
    let match = this.#matches.get(key);
    if (match === undefined) {
      match = this.#find(item) ?? null;
      this.#matches.set(key, match);
      trimOldest(this.#matches, MAX_MATCHES);
    }
    return match ?? undefined;
  }

  candidates(item: Item, query: string): GuideChannel[] {
    const named = query === "" ? item : { title: query, tvgId: "", tvgName: "", countries: null };
    return this.#matching().candidates(named, MAX_CANDIDATES);
  }

  isChosen(item: Item): boolean {
    return this.#choices.size > 0 && this.#choices.has(this.#parts.items.figures(item).hash);
  }

  /** See `Guide.choose`. */
  async choose(item: Item, key: string | null | undefined): Promise<void> {
    const { hash } = this.#parts.items.figures(item);
    if (key !== undefined && key !== null && !this.channels.has(key))
      throw new SluiceError("bad_parameter", "the programme guides have no such channel");
    if (key !== undefined && !this.#choices.has(hash) && this.#choices.size >= MAX_CHOICES)
      throw new SluiceError("too_many", `the limit of ${MAX_CHOICES} chosen channels is reached`);
    if (key === undefined) {
      await this.#parts.store.commit({ delete: [CHOICES + hash] });
      this.#choices.delete(hash);
    } else {
      await this.#parts.store.commit({ set: [[CHOICES + hash, key]] });
      this.#choices.set(hash, key);
    }
    this.#matches.clear();
  }

  #find(item: Item): GuideMatch | undefined {
    const hasChoices = this.#choices.size > 0;
    const chosen = hasChoices ? this.#choices.get(this.#parts.items.figures(item).hash) : undefined;
    if (chosen === null) return undefined;
    const channel = chosen === undefined ? undefined : this.channels.get(chosen);
    return channel ? { channel, reason: "chosen" } : this.#matching().match(item);
  }

  #matching(): ChannelMatcher {
    this.#matcher ??= new ChannelMatcher(this.channels.values());
    return this.#matcher;
  }
}

/** What the channel of an item depends on. */
function matchKey({ tvgId, tvgName, title, countries, content }: Item): string {
  return `${tvgId}\n${tvgName}\n${title}\n${countries ?? ""}\n${contentName(content)}`;
}
