import { TICKS_PER_SECOND } from "./timestamps.ts";

/** Media time of one measurement, long enough to average out large key frames. */
const BUCKET_TICKS = TICKS_PER_SECOND;
const BUCKETS = 30;
/** Below this rate the header of a piece of 125 ms would be a large share of it. */
const SLOW_BYTES_PER_SECOND = 250_000;

/** Returns the duration of pieces for a stream with this bit rate, in milliseconds. */
export function pieceMsFor(bytesPerSecond: number): number {
  return bytesPerSecond < SLOW_BYTES_PER_SECOND ? 250 : 125;
}

/** Measures the bit rate of a stream by its PCR, independent of the speed of arrival. */
export class LiveRate {
  readonly #buckets: { ticks: number; bytes: number }[] = [];
  #ticks = 0;
  #bytes = 0;

  /** Adds `bytes` that cover `ticks` (90 kHz) of the PCR. */
  add(ticks: number, bytes: number): void {
    this.#ticks += ticks;
    this.#bytes += bytes;
    if (this.#ticks < BUCKET_TICKS) return;
    this.#buckets.push({ ticks: this.#ticks, bytes: this.#bytes });
    if (this.#buckets.length > BUCKETS) this.#buckets.shift();
    this.#ticks = 0;
    this.#bytes = 0;
  }

  /** Bytes per second over the last 30 s; undefined during the first second. */
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
