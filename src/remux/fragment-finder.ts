import type { AbortSignalLike } from "../base/byte-source.ts";
import type { FragmentPlace, Fragments } from "./fragments.ts";

/** The position where a segment of a fragmented file begins. */
export interface FragmentBoundary {
  /** Byte position of the `moof` box or a box before it; 0 for the samples in `moov`. */
  readonly at: number;
  /** Index of the sample of the leading track in that fragment at which the segment begins; 0 for the whole fragment. */
  readonly sample: number;
  readonly seconds: number;
}

/** Locates the segment boundaries of a file. */
export interface FragmentBoundaries {
  /** Returns the boundary for the cut planned at `seconds`; undefined if the file ends before it. */
  find(seconds: number, signal?: AbortSignalLike): Promise<FragmentBoundary | undefined>;
}

/** Tolerance for the rounding of divisions, because cuts are compared in seconds. */
const GRACE_SECONDS = 1e-6;
/** Closer than this, reading fragment by fragment costs less than another probe. */
const NEAR_SECONDS = 12;
const NEAR_BYTES = 1024 * 1024;
const PROBES_LIMIT = 12;
/** A fragment begins within this many bytes: 10 seconds of 25 Mbit/s. */
const SEARCH_BYTES = 32 * 1024 * 1024;
/** Limit of fragments read in sequence: enough for fragments of 0.1 s over the distance between probes. */
const WALK_LIMIT = 10_000;
/** Limit of fragments without a key frame after an index entry. */
const CHECK_LIMIT = 256;

/** Boundaries from an index whose entries are all key frames. */
export class IndexedBoundaries implements FragmentBoundaries {
  readonly #boundaries: ReadonlyMap<number, FragmentBoundary>;

  constructor(boundaries: readonly FragmentBoundary[]) {
    this.#boundaries = new Map(boundaries.map((boundary) => [boundary.seconds, boundary]));
  }

  async find(seconds: number): Promise<FragmentBoundary | undefined> {
    return this.#boundaries.get(seconds);
  }
}

/**
 * Boundaries from an index whose entries need not be key frames (some writers list every fragment in `mfra`): the boundary of an
 * entry is the first key frame at or after it.
 */
export class CheckedBoundaries implements FragmentBoundaries {
  readonly #fragments: Fragments;
  readonly #entries: ReadonlyMap<number, FragmentBoundary>;
  readonly #known = new Map<number, FragmentBoundary>();

  constructor(fragments: Fragments, entries: readonly FragmentBoundary[]) {
    this.#fragments = fragments;
    this.#entries = new Map(entries.map((entry) => [entry.seconds, entry]));
  }

  async find(seconds: number, signal?: AbortSignalLike): Promise<FragmentBoundary | undefined> {
    const entry = this.#entries.get(seconds);
    if (!entry || entry.at === 0) return entry;
    const known = this.#known.get(seconds);
    if (known) return known;
    const { size } = this.#fragments.cache;
    let place = await this.#fragments.nextPlace(entry.at, size, signal);
    for (let i = 0; i < CHECK_LIMIT && place && !place.isKey; i++)
      place = await this.#fragments.nextPlace(place.next, size, signal);
    const boundary = place?.isKey ? { at: place.at, sample: place.sample, seconds: place.seconds } : entry;
    this.#known.set(seconds, boundary);
    return boundary;
  }
}

/**
 * Searches for boundaries in a file without an index. The boundary of a cut is the first fragment in file order whose first key
 * frame is at or after its time (or any fragment, if there is no key frame before the next cut), so the result does not depend on
 * the course of the search.
 */
export class SearchedBoundaries implements FragmentBoundaries {
  readonly #fragments: Fragments;
  readonly #cuts: readonly number[];
  readonly #endSeconds: number;
  readonly #known = new Map<number, FragmentBoundary | undefined>();
  readonly #first: FragmentPlace;

  constructor(fragments: Fragments, cuts: readonly number[], first: FragmentPlace, endSeconds: number) {
    this.#fragments = fragments;
    this.#cuts = cuts;
    this.#first = first;
    this.#endSeconds = endSeconds;
  }

  async find(seconds: number, signal?: AbortSignalLike): Promise<FragmentBoundary | undefined> {
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

  /** Finds a byte position before the boundary from which reading forward is cheap. */
  async #approach(seconds: number, signal?: AbortSignalLike): Promise<number> {
    let low = this.#nearestKnown(seconds);
    let high = { at: this.#fragments.cache.size, seconds: Math.max(this.#endSeconds, seconds + 1) };
    for (let i = 0; i < PROBES_LIMIT; i++) {
      if (high.at - low.at < NEAR_BYTES || seconds - low.seconds < NEAR_SECONDS) break;
      const share = (seconds - NEAR_SECONDS / 2 - low.seconds) / Math.max(0.001, high.seconds - low.seconds);
      // Stay away from the edges, so that each probe shrinks the interval.
      const guess = Math.floor(low.at + (high.at - low.at) * Math.min(0.95, Math.max(0.05, share)));
      const place = await this.#placeAfter(guess, high.at, signal);
      if (place && place.seconds < seconds - GRACE_SECONDS) low = place;
      else high = { at: guess, seconds: place?.seconds ?? high.seconds };
    }
    return low.at;
  }

  #nearestKnown(seconds: number): { at: number; seconds: number } {
    let best: { at: number; seconds: number } = { at: this.#first.at, seconds: this.#first.seconds };
    for (const boundary of this.#known.values()) {
      if (boundary && boundary.seconds < seconds - GRACE_SECONDS && boundary.at > best.at) best = boundary;
    }
    return best;
  }

  async #placeAfter(from: number, to: number, signal?: AbortSignalLike) {
    const found = await this.#fragments.find(from, Math.min(to, from + SEARCH_BYTES), "first", signal);
    return found === undefined ? undefined : this.#fragments.nextPlace(found, to, signal);
  }
}
