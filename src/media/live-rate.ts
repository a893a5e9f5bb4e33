import { TICKS_PER_SECOND } from "./timestamps.ts";

/** Media time over which the rate is measured: long enough that a large keyframe does not show. */
const BUCKET_TICKS = TICKS_PER_SECOND;
const BUCKETS = 30;
/** Below this rate a piece of 125 ms would be too small for its header. */
const SLOW_BYTES_PER_SECOND = 250_000;

/** How long pieces of a stream of this rate should be, in ms. */
export function pieceMsFor(bytesPerSecond: number): number {
  return bytesPerSecond < SLOW_BYTES_PER_SECOND ? 250 : 125;
}

/** The rate of a stream by its own clock, whatever the pace at which it comes. */
export class LiveRate {
  readonly #buckets: { ticks: number; bytes: number }[] = [];
  #ticks = 0;
  #bytes = 0;

  /** `ticks` of 90 kHz of the programme clock passed with `bytes`. */
  add(ticks: number, bytes: number): void {
    this.#ticks += ticks;
    this.#bytes += bytes;
    if (this.#ticks < BUCKET_TICKS) return;
    this.#buckets.push({ ticks: this.#ticks, bytes: this.#bytes });
    if (this.#buckets.length > BUCKETS) this.#buckets.shift();
    this.#ticks = 0;
    this.#bytes = 0;
  }

  /** Bytes a second over the last half minute; undefined before the first second. */
  get bytesPerSecond(): number | undefined {
    if (this.#buckets.length === 0) return undefined;
    let ticks = 0;
    let bytes = 0;
    for (const bucket of this.#buckets) {
      ticks += bucket.ticks;
      bytes += bucket.bytes;
    }
    return (bytes * TICKS_PER_SECOND) / ticks;
  }
}
