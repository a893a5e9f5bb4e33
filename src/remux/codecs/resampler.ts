import type { Samples } from "./samples.ts";

/** Length of the filter in samples of the input: its delay is below half a millisecond. */
const TAPS = 32;
const HALF = TAPS / 2;
/** The share of the band that passes. */
const PASSBAND = 0.92;
/** The rates of codecs in Hz. A frame of FLAC can state 1 Hz, and would become gigabytes of samples. */
const [MIN_RATE, MAX_RATE] = [8000, 192_000];

/**
 * Gives a track one sampling rate. A live stream can change its rate, for instance for advertisements; players do not follow that within
 * AAC. A single frame with another rate counts as damaged.
 */
export class RateConverter {
  readonly #rate: number;
  #otherRate: number | undefined;
  #resampler: Resampler | undefined;

  constructor(rate: number) {
    this.#rate = rate;
  }

  /** Takes the samples of consecutive frames. Returns undefined for a damaged frame. */
  convert(samples: Samples | undefined): Samples | undefined {
    if (samples && (samples.sampleRate < MIN_RATE || samples.sampleRate > MAX_RATE)) return undefined;
    const isChanged = samples !== undefined && samples.sampleRate !== this.#rate;
    const isFirst = isChanged && samples.sampleRate !== this.#otherRate;
    this.#otherRate = isChanged ? samples.sampleRate : undefined;
    if (!isChanged || isFirst) {
      this.#resampler = undefined;
      return isFirst ? undefined : samples;
    }
    if (this.#resampler?.channels !== samples.channels.length)
      this.#resampler = new Resampler(samples.sampleRate, this.#rate, samples.channels.length);
    const channels = this.#resampler.push(samples.channels);
    return { ...samples, sampleRate: this.#rate, channels };
  }
}

/** Changes the sampling rate of consecutive samples by interpolation with a windowed sinc. */
class Resampler {
  readonly channels: number;
  /** `up / down` samples of output for each of the input, without a common divisor. */
  readonly #up: number;
  readonly #down: number;
  /** The filter for each position between two samples that has occurred. */
  readonly #filters = new Map<number, Float32Array>();
  #held: Float32Array[];
  /** The position of the next output in the held samples: whole ones, and parts of `#up`. */
  #at = HALF;
  #part = 0;

  constructor(from: number, to: number, channels: number) {
    const divisor = commonDivisor(from, to);
    this.channels = channels;
    this.#up = to / divisor;
    this.#down = from / divisor;
    this.#held = Array.from({ length: channels }, () => new Float32Array(HALF));
  }

  push(input: readonly Float32Array[]): Float32Array[] {
    const held = input.map((samples, channel) => joined(this.#held[channel]!, samples));
    const length = held[0]!.length;
    const filters: Float32Array[] = [];
    const starts: number[] = [];
    while (this.#at + HALF < length) {
      filters.push(this.#filter(this.#part));
      starts.push(this.#at - HALF + 1);
      this.#part += this.#down;
      this.#at += Math.floor(this.#part / this.#up);
      this.#part %= this.#up;
    }
    const output = held.map((samples) =>
      Float32Array.from(starts, (start, i) => {
        const filter = filters[i]!;
        let sum = 0;
        for (let tap = 0; tap < TAPS; tap++) sum += samples[start + tap]! * filter[tap]!;
        return sum;
      }),
    );
    const used = Math.max(0, Math.min(length, this.#at - HALF + 1));
    this.#held = held.map((samples) => samples.slice(used));
    this.#at -= used;
    return output;
  }

  #filter(part: number): Float32Array {
    const known = this.#filters.get(part);
    if (known) return known;
    const offset = HALF - 1 + part / this.#up;
    const cutoff = PASSBAND * Math.min(1, this.#up / this.#down);
    const filter = Float32Array.from({ length: TAPS }, (_, tap) => {
      const x = tap - offset;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
      // A Hann window.
      return cutoff * sinc * Math.cos((Math.PI * x) / TAPS) ** 2;
    });
    this.#filters.set(part, filter);
    return filter;
  }
}

function joined(first: Float32Array, second: Float32Array): Float32Array {
  const both = new Float32Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}
