import type { UnixSeconds } from "../../base/time.ts";
import type { Item } from "../contract.ts";
import type { XmltvChannel, XmltvProgramme } from "./xmltv-reader.ts";

/** A programme of a known channel. */
export interface Programme extends Omit<XmltvProgramme, "channel" | "stop"> {
  readonly stop: UnixSeconds;
}

/** A programme as lists of items show it. */
export type ListedProgramme = Pick<Programme, "start" | "stop" | "title" | "description">;

/** A channel of a guide. Its `id` is unique within its source, its `key` among all sources. */
export interface GuideChannel extends XmltvChannel {
  readonly key: string;
}

/** Why an item has its channel: the user chose it, the ids are equal, the names are equal, or the names are similar. */
export type MatchReason = "chosen" | "id" | "name" | "similar";

export interface GuideMatch {
  readonly channel: GuideChannel;
  readonly reason: MatchReason;
}

/** A programme guide that the engine fetches. */
export interface GuideSource {
  readonly id: number;
  readonly url: string;
  /** Added by the user, or named by a list. */
  readonly origin: "user" | "list";
  /** 0: never. */
  readonly lastUpdate: UnixSeconds;
  readonly channelCount: number;
  readonly programmeCount: number;
  /** Why the last refresh failed; the programmes of the refresh before it are kept. */
  readonly problem: string | null;
}

/** Programme guides of the playlist's channels. */
export interface Guide {
  sources(): readonly GuideSource[];
  /** Adds a source and starts its first refresh. Resolves to its id. Rejects with `bad_parameter` or `too_many`. */
  addSource(url: string, options: { readonly allowPrivateUrls: boolean }): Promise<number>;
  /** Removes a source and its programmes. A source that a list names is not fetched again. Rejects with `unknown_item`. */
  removeSource(id: number): Promise<void>;
  /** Refreshes all sources in the background. Returns the task id. */
  refresh(): number;
  /** Returns true if any source has programmes. */
  readonly hasProgrammes: boolean;
  /** The channel of an item; undefined if no channel fits for certain. */
  match(item: Item): GuideMatch | undefined;
  /** The channels that resemble an item most, best first, for the user to choose from. */
  candidates(item: Item, query: string): readonly GuideChannel[];
  /** Returns true if the user has chosen a channel, or no guide, for the item. */
  isChosen(item: Item): boolean;
  /** Stores the user's choice for an item and every item of the same channel; null: no guide. undefined: automatic. */
  choose(item: Item, key: string | null | undefined): Promise<void>;
  /** The present programme of an item and the next one. Empty if the item has no channel. */
  nowAndNext(item: Item): Promise<readonly ListedProgramme[]>;
  /** The programmes of an item that overlap `[from, to)`, in order, at most `limit`. Empty if the item has no channel. */
  programmes(item: Item, from: UnixSeconds, to: UnixSeconds, limit: number): Promise<readonly Programme[]>;
  /**
   * Searches channels of the guides, named by their keys, for programmes that end after `from` and have the folded text `part`
   * in their title or subtitle. Yields the matches in no order, an empty array after each short piece of work without any, and
   * undefined for a guide that cannot be read to its end.
   */
  search(
    keys: readonly string[],
    part: string,
    from: UnixSeconds,
  ): AsyncGenerator<readonly KeyedProgramme[] | undefined, void>;
}

/** A programme and the key of its channel. */
export interface KeyedProgramme {
  readonly key: string;
  readonly programme: Programme;
}
