import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsStream } from "../media/ts-programme.ts";
import type { TsUnit } from "../media/ts-units.ts";
import { type TsPlace, type TsTimes, ticksSince } from "./ts-head.ts";
import type { TsPlan } from "./ts-plan.ts";
import type { TsReader } from "./ts-reader.ts";

const PROBE_BYTES = 64 * 1024;
/** A probe that finds no unit within this many bytes is in a damaged part of the file. */
const MAX_PROBE_BYTES = 2 * 1024 * 1024;
const SCAN_BYTES = 256 * 1024;
/** Closer than this to the boundary, reading forward costs less than another probe. */
const NEAR_TICKS = 0.8 * TICKS_PER_SECOND;
const NEAR_BYTES = 512 * 1024;
/** Probes by interpolation, then by bisection: 2^30 bytes shrink below NEAR_BYTES in 11 steps. */
const MAX_INTERPOLATIONS = 8;
const MAX_PROBES = 32;
/** Limit of positions found by probes, which later searches start from. */
const MAX_ANCHORS = 4096;

/**
 * Finds segment boundaries with few bytes read. The boundary of a planned start is the first key frame in file order at or after
 * that time (or any frame, if there is no key frame before the next planned start). Decode times increase through a file, so the
 * result does not depend on the course of the search, and a segment ends where the next one begins.
 */
export class TsBoundaries {
  readonly #reader: TsReader;
  readonly #leading: TsStream;
  readonly #times: TsTimes;
  readonly #plan: TsPlan;
  readonly #known = new Map<number, TsPlace>();
  /** Sorted by byte position. */
  readonly #anchors: TsPlace[];

  constructor(reader: TsReader, leading: TsStream, times: TsTimes, plan: TsPlan) {
    this.#reader = reader;
    this.#leading = leading;
    this.#times = times;
    this.#plan = plan;
    this.#anchors = [
      { at: 0, ticks: Number.NEGATIVE_INFINITY },
      { at: reader.source.size, ticks: Number.POSITIVE_INFINITY },
    ];
    this.#known.set(0, { at: 0, ticks: 0 });
    for (const [i, at] of plan.places?.entries() ?? []) this.#known.set(i, { at, ticks: plan.starts[i]! });
    this.#known.set(plan.starts.length, { at: reader.source.size, ticks: plan.endTicks });
  }

  /** The timestamp of the first unit. */
  get firstDts(): number {
    return this.#times.firstDts;
  }

  /** The start of segment `index` in ticks: the actual time if its boundary is known, else the planned time. */
  startTicks(index: number): number {
    return this.#known.get(index)?.ticks ?? this.#plan.starts[index]!;
  }

  /** Returns the byte position where segment `index` begins; the file size for the index after the last. */
  async find(index: number, signal?: AbortSignal): Promise<number> {
    const known = this.#known.get(index);
    if (known) return known.at;
    const found = await this.#search(this.#plan.starts[index]!, this.#plan.starts[index + 1], signal);
    const first = this.#known.get(index) ?? found; // A parallel search can have finished first: keep its result.
    this.#known.set(index, first);
    return first.at;
  }

  async #search(ticks: number, limit: number | undefined, signal?: AbortSignal): Promise<TsPlace> {
    // Half a frame of tolerance, because planned starts are rounded.
    const wanted = ticks - this.#times.frameTicks / 2;
    const from = await this.#approach(wanted, signal);
    let fallback: TsPlace | undefined;
    for await (const unit of this.#reader.units(this.#leading, from, SCAN_BYTES, signal)) {
      const place = this.#place(unit);
      if (place.ticks < wanted) continue;
      if (limit !== undefined && place.ticks >= limit - this.#times.frameTicks / 2) return fallback ?? place;
      if (unit.isKey) return place;
      fallback ??= place;
    }
    return fallback ?? { at: this.#reader.source.size, ticks: this.#plan.endTicks };
  }

  /** Finds a byte position before `wanted` from which reading forward is cheap. */
  async #approach(wanted: number, signal?: AbortSignal): Promise<number> {
    let [low, high] = this.#anchorsAround(wanted);
    for (let probes = 0; probes < MAX_PROBES; probes++) {
      if (wanted - low.ticks <= NEAR_TICKS || high.at - low.at <= NEAR_BYTES) break;
      const guess =
        probes < MAX_INTERPOLATIONS ? this.#interpolate(low, high, wanted) : (low.at + high.at) / 2;
      const at = Math.floor(Math.min(Math.max(guess, low.at), high.at - PROBE_BYTES));
      if (at <= low.at) break;
      const place = await this.#probe(at, high.at, signal);
      if (place && place.ticks < wanted) {
        low = place;
        this.#remember(place);
      } else {
        high = { at, ticks: place?.ticks ?? high.ticks };
      }
    }
    return low.at;
  }

  #anchorsAround(wanted: number): [TsPlace, TsPlace] {
    let low = this.#anchors[0]!;
    let high = this.#anchors.at(-1)!;
    for (const anchor of this.#anchors) {
      if (anchor.ticks < wanted && anchor.at >= low.at) low = anchor;
      if (anchor.ticks >= wanted && anchor.at < high.at) high = anchor;
    }
    return [low, high];
  }

  /** Aims slightly early: a probe after the boundary costs another probe, one before it only a short read. */
  #interpolate(low: TsPlace, high: TsPlace, wanted: number): number {
    const lowTicks = Math.max(0, low.ticks);
    const highTicks = Math.min(high.ticks, this.#plan.endTicks);
    const share = (wanted - NEAR_TICKS / 2 - lowTicks) / Math.max(1, highTicks - lowTicks);
    return low.at + (high.at - low.at) * Math.min(Math.max(share, 0), 1);
  }

  /** Finds the first unit that begins in the bytes `[at, end)`. */
  async #probe(at: number, end: number, signal?: AbortSignal): Promise<TsPlace | undefined> {
    const limit = Math.min(end, at + MAX_PROBE_BYTES);
    for await (const unit of this.#reader.units(this.#leading, at, PROBE_BYTES, signal)) {
      return unit.at < limit ? this.#place(unit) : undefined;
    }
    return undefined;
  }

  #place(unit: TsUnit): TsPlace {
    if (this.#times.isClockContinuous)
      return { at: unit.at, ticks: ticksSince(unit.dts, this.#times.firstDts) };
    return { at: unit.at, ticks: (unit.at / this.#reader.source.size) * this.#plan.endTicks };
  }

  #remember(place: TsPlace): void {
    if (this.#anchors.length >= MAX_ANCHORS) return;
    const index = this.#anchors.findIndex((anchor) => anchor.at >= place.at);
    if (this.#anchors[index]!.at !== place.at) this.#anchors.splice(index, 0, place);
  }
}
