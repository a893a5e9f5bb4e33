import type { AbortSignalLike } from "../base/byte-source.ts";
import type { FragmentPlace, Fragments } from "./fragments.ts";

/** Where a segment of a fragmented file begins. */
export interface FragmentBorder {
  /** Where the `moof` box lies, or a box before it; 0 for samples that `moov` tells of. */
  readonly at: number;
  /** With which sample of the leading track in that fragment; 0 for all of it. */
  readonly sample: number;
  readonly seconds: number;
}

/** Tells where segments begin. */
export interface FragmentBorders {
  /** The border that was planned at `seconds`; undefined for the end of the file. */
  find(seconds: number, signal?: AbortSignalLike): Promise<FragmentBorder | undefined>;
}

/** Cuts are told in the seconds they were planned in; so much covers the rounding of a division. */
const GRACE_SECONDS = 1e-6;
/** From so near it is cheaper to walk on from fragment to fragment than to look again. */
const NEAR_SECONDS = 12;
const NEAR_BYTES = 1024 * 1024;
const PROBES_LIMIT = 12;
/** A fragment begins within so many bytes: 10 seconds of 25 Mbit/s. */
const SEARCH_BYTES = 32 * 1024 * 1024;
/** Fragments of a tenth of a second, over the distance that is walked. */
const WALK_LIMIT = 10_000;
/** Fragments without a key frame after one that an index names. */
const CHECK_LIMIT = 256;

/** Borders that an index of the file tells. */
export class IndexedBorders implements FragmentBorders {
  readonly #borders: ReadonlyMap<number, FragmentBorder>;

  constructor(borders: readonly FragmentBorder[]) {
    this.#borders = new Map(borders.map((border) => [border.seconds, border]));
  }

  async find(seconds: number): Promise<FragmentBorder | undefined> {
    return this.#borders.get(seconds);
  }
}

/**
 * Borders by an index whose entries need not be key frames (some writers list every fragment at the end of the file): the border of
 * an entry is the first fragment from there on that has one, and its first key frame.
 */
export class CheckedBorders implements FragmentBorders {
  readonly #fragments: Fragments;
  readonly #entries: ReadonlyMap<number, FragmentBorder>;
  readonly #known = new Map<number, FragmentBorder>();

  constructor(fragments: Fragments, entries: readonly FragmentBorder[]) {
    this.#fragments = fragments;
    this.#entries = new Map(entries.map((entry) => [entry.seconds, entry]));
  }

  async find(seconds: number, signal?: AbortSignalLike): Promise<FragmentBorder | undefined> {
    const entry = this.#entries.get(seconds);
    if (!entry || entry.at === 0) return entry;
    const known = this.#known.get(seconds);
    if (known) return known;
    const { size } = this.#fragments.cache;
    let place = await this.#fragments.nextPlace(entry.at, size, signal);
    for (let i = 0; i < CHECK_LIMIT && place && !place.isKey; i++)
      place = await this.#fragments.nextPlace(place.next, size, signal);
    const border = place?.isKey ? { at: place.at, sample: place.sample, seconds: place.seconds } : entry;
    this.#known.set(seconds, border);
    return border;
  }
}

/**
 * Finds borders in a file without an index. The border of a cut is the first fragment in file order whose first key frame is at
 * or after its time (any fragment, where the next cut passes without one): so it is the same however it was searched for.
 */
export class SearchedBorders implements FragmentBorders {
  readonly #fragments: Fragments;
  readonly #cuts: readonly number[];
  readonly #endSeconds: number;
  readonly #known = new Map<number, FragmentBorder | undefined>();
  readonly #first: FragmentPlace;

  constructor(fragments: Fragments, cuts: readonly number[], first: FragmentPlace, endSeconds: number) {
    this.#fragments = fragments;
    this.#cuts = cuts;
    this.#first = first;
    this.#endSeconds = endSeconds;
  }

  async find(seconds: number, signal?: AbortSignalLike): Promise<FragmentBorder | undefined> {
    if (!this.#known.has(seconds)) {
      const found = await this.#search(seconds, signal);
      this.#known.set(seconds, found && { at: found.at, sample: found.sample, seconds: found.seconds });
    }
    return this.#known.get(seconds);
  }

  async #search(seconds: number, signal?: AbortSignalLike): Promise<FragmentPlace | undefined> {
    const following = this.#cuts[this.#cuts.indexOf(seconds) + 1] ?? Number.POSITIVE_INFINITY;
    const { size } = this.#fragments.cache;
    let at = await this.#approach(seconds, signal);
    let fallback: FragmentPlace | undefined;
    for (let i = 0; i < WALK_LIMIT; i++) {
      const place = await this.#fragments.nextPlace(at, size, signal);
      if (!place) break;
      at = place.next;
      if (place.seconds < seconds - GRACE_SECONDS) continue;
      if (place.seconds >= following - GRACE_SECONDS) return fallback ?? place;
      if (place.isKey) return place;
      fallback ??= place;
    }
    return fallback;
  }

  /** A place before the border, near enough to walk on from. */
  async #approach(seconds: number, signal?: AbortSignalLike): Promise<number> {
    let low = this.#nearestKnown(seconds);
    let high = { at: this.#fragments.cache.size, seconds: Math.max(this.#endSeconds, seconds + 1) };
    for (let i = 0; i < PROBES_LIMIT; i++) {
      if (high.at - low.at < NEAR_BYTES || seconds - low.seconds < NEAR_SECONDS) break;
      const share = (seconds - NEAR_SECONDS / 2 - low.seconds) / Math.max(0.001, high.seconds - low.seconds);
      // Never at the edges, so that each look makes the gap smaller.
      const guess = Math.floor(low.at + (high.at - low.at) * Math.min(0.95, Math.max(0.05, share)));
      const place = await this.#placeAfter(guess, high.at, signal);
      if (place && place.seconds < seconds - GRACE_SECONDS) low = place;
      else high = { at: guess, seconds: place?.seconds ?? high.seconds };
    }
    return low.at;
  }

  #nearestKnown(seconds: number): { at: number; seconds: number } {
    let best: { at: number; seconds: number } = { at: this.#first.at, seconds: this.#first.seconds };
    for (const border of this.#known.values()) {
      if (border && border.seconds < seconds - GRACE_SECONDS && border.at > best.at) best = border;
    }
    return best;
  }

  async #placeAfter(from: number, to: number, signal?: AbortSignalLike) {
    const found = await this.#fragments.find(from, Math.min(to, from + SEARCH_BYTES), "first", signal);
    return found === undefined ? undefined : this.#fragments.nextPlace(found, to, signal);
  }
}
