import { TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { TsStream } from "../media/ts-programme.ts";
import type { TsUnit } from "../media/ts-units.ts";
import { type TsPlace, type TsTimes, ticksSince } from "./ts-head.ts";
import type { TsPlan } from "./ts-plan.ts";
import type { TsReader } from "./ts-reader.ts";

const PROBE_BYTES = 64 * 1024;
/** Where a probe finds no unit in so many bytes, the file has a hole there. */
const MAX_PROBE_BYTES = 2 * 1024 * 1024;
const SCAN_BYTES = 256 * 1024;
/** From so near the border it is cheaper to read on than to guess again. */
const NEAR_TICKS = 0.8 * TICKS_PER_SECOND;
const NEAR_BYTES = 512 * 1024;
/** Guesses by interpolation, then by halving: 2^30 bytes are halved to less than NEAR_BYTES in 11 steps. */
const MAX_INTERPOLATIONS = 8;
const MAX_PROBES = 32;
/** Places found on the way, kept as anchors of later searches. */
const MAX_ANCHORS = 4096;

/**
 * Finds where segments begin, with few bytes read. The border of a planned start is the first keyframe in file order whose
 * time is not before it (any frame, where the next segment's start passes without a keyframe). Decode times grow through a
 * file, so the answer is the same whichever way the search went, and a segment ends where the next one begins.
 */
export class TsBorders {
  readonly #reader: TsReader;
  readonly #leading: TsStream;
  readonly #times: TsTimes;
  readonly #plan: TsPlan;
  readonly #known = new Map<number, TsPlace>();
  /** Sorted by place. */
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

  /** The start of segment `index` in ticks: where it was found, else where it is planned. */
  startTicks(index: number): number {
    return this.#known.get(index)?.ticks ?? this.#plan.starts[index]!;
  }

  /** The byte where segment `index` begins; the size of the file for the one after the last. */
  async find(index: number, signal?: AbortSignal): Promise<number> {
    const known = this.#known.get(index);
    if (known) return known.at;
    const found = await this.#search(this.#plan.starts[index]!, this.#plan.starts[index + 1], signal);
    const first = this.#known.get(index) ?? found; // Another search may have been faster: one answer for all.
    this.#known.set(index, first);
    return first.at;
  }

  async #search(ticks: number, limit: number | undefined, signal?: AbortSignal): Promise<TsPlace> {
    // A planned start may be a rounding below its keyframe.
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

  /** A place before `wanted`, near enough to read on from. */
  async #approach(wanted: number, signal?: AbortSignal): Promise<number> {
    let [low, high] = this.#around(wanted);
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

  #around(wanted: number): [TsPlace, TsPlace] {
    let low = this.#anchors[0]!;
    let high = this.#anchors.at(-1)!;
    for (const anchor of this.#anchors) {
      if (anchor.ticks < wanted && anchor.at >= low.at) low = anchor;
      if (anchor.ticks >= wanted && anchor.at < high.at) high = anchor;
    }
    return [low, high];
  }

  /** Aims a little early: landing after the border costs another guess, landing before it only a little reading. */
  #interpolate(low: TsPlace, high: TsPlace, wanted: number): number {
    const lowTicks = Math.max(0, low.ticks);
    const highTicks = Math.min(high.ticks, this.#plan.endTicks);
    const share = (wanted - NEAR_TICKS / 2 - lowTicks) / Math.max(1, highTicks - lowTicks);
    return low.at + (high.at - low.at) * Math.min(Math.max(share, 0), 1);
  }

  /** The first unit that begins in `at` … `end`. */
  async #probe(at: number, end: number, signal?: AbortSignal): Promise<TsPlace | undefined> {
    const limit = Math.min(end, at + MAX_PROBE_BYTES);
    for await (const unit of this.#reader.units(this.#leading, at, PROBE_BYTES, signal)) {
      return unit.at < limit ? this.#place(unit) : undefined;
    }
    return undefined;
  }

  #place(unit: TsUnit): TsPlace {
    if (this.#times.isClockSound) return { at: unit.at, ticks: ticksSince(unit.dts, this.#times.firstDts) };
    return { at: unit.at, ticks: (unit.at / this.#reader.source.size) * this.#plan.endTicks };
  }

  #remember(place: TsPlace): void {
    if (this.#anchors.length >= MAX_ANCHORS) return;
    const index = this.#anchors.findIndex((anchor) => anchor.at >= place.at);
    if (this.#anchors[index]!.at !== place.at) this.#anchors.splice(index, 0, place);
  }
}
