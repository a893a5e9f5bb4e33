import { BLOCK_SAMPLES, Limiter } from "./limiter.ts";
import { mixInto, type Samples } from "./samples.ts";

/** A frame whose time differs by less than this from the end of the one before it follows it without a gap. */
const CONTIGUOUS_SECONDS = 0.01;
/** Containers round times to milliseconds: within this, a frame is at a whole multiple of its length after the anchor. */
const ROUNDING_SECONDS = 0.002;
/** A longer gap is a jump of the clock and not silence. */
const MAX_GAP_SECONDS = 15;
/** Gaps of a segment together: hostile media could otherwise ask for hours of silence in a few bytes. */
const MAX_SILENCE_SECONDS = 60;

/** When a frame is heard, as its container states it. */
interface FrameTimes {
  readonly ptsSeconds: number;
  readonly durationSeconds: number;
}

interface TimelineFormat {
  readonly sampleRate: number;
  readonly channels: 2 | 6;
  readonly anchor: number;
}

/** Places decoded frames on a grid of blocks of 1024 samples, fills gaps with silence, and drops what overlaps. */
export class Timeline {
  readonly #format: TimelineFormat;
  readonly #output: (block: Float32Array) => void;
  readonly #limiter: Limiter;
  readonly #free: Float32Array[] = [];
  #block: Float32Array;
  /** The position after the last sample; undefined before the first one. */
  #end: number | undefined;
  #frameSamples = 0;
  /** Silence that gaps may still add, in samples. */
  #silenceLeft: number;
  /** The number of the first block. */
  firstBlock = 0;

  /** `output` receives the blocks in order, from `firstBlock` on. */
  constructor(format: TimelineFormat, output: (block: Float32Array) => void) {
    this.#format = format;
    this.#output = output;
    this.#limiter = new Limiter(format.channels);
    this.#silenceLeft = MAX_SILENCE_SECONDS * format.sampleRate;
    this.#block = this.#emptyBlock();
  }

  /** Takes back a block of the output whose samples are not needed any more: those of a film would be garbage of 400 kB a second. */
  recycle(block: Float32Array): void {
    this.#free.push(block);
  }

  /** The number of complete blocks from time zero. */
  get endBlock(): number {
    return Math.floor((this.#end ?? 0) / BLOCK_SAMPLES);
  }

  /**
   * Adds a frame; if it is damaged (`samples` is undefined), silence of its duration. `isOnGrid`: it is placed at a whole multiple of its
   * length, if it is close to that.
   */
  add(packet: FrameTimes, samples: Samples | undefined, gain: number, isOnGrid = true): void {
    const count = samples?.channels[0]?.length ?? this.#lostSamples(packet);
    if (count === 0) return;
    if (samples && isOnGrid) this.#frameSamples = count;
    const at = this.#place(packet.ptsSeconds, isOnGrid ? count : 1);
    if (at === undefined) return;
    if (samples) this.#write(samples, gain);
    else this.#silence(count);
  }

  /** Completes the last block, adds `blocks` of silence, and returns the number of the block after the last sample. */
  finish(blocks: number): number {
    const end = Math.ceil((this.#end ?? 0) / BLOCK_SAMPLES);
    this.#silence((end + blocks) * BLOCK_SAMPLES - (this.#end ?? 0));
    return end;
  }

  #lostSamples({ durationSeconds }: FrameTimes): number {
    const stated = Math.round(Math.min(1, durationSeconds) * this.#format.sampleRate);
    return this.#frameSamples || Math.max(0, stated);
  }

  /** Moves to the position of a frame; returns undefined if the frame must be dropped. */
  #place(seconds: number, count: number): number | undefined {
    const { sampleRate } = this.#format;
    const exact = seconds * sampleRate;
    if (this.#end === undefined) {
      const at = this.#grid(exact, count);
      this.firstBlock = Math.floor(at / BLOCK_SAMPLES);
      this.#end = this.firstBlock * BLOCK_SAMPLES;
      this.#silence(at - this.#end);
      return at;
    }
    const gap = exact - this.#end;
    if (Math.abs(gap) <= CONTIGUOUS_SECONDS * sampleRate) return this.#end;
    if (gap < 0 || gap > MAX_GAP_SECONDS * sampleRate) return undefined;
    const at = Math.max(this.#end, this.#grid(exact, count));
    if (at - this.#end > this.#silenceLeft) return undefined;
    this.#silenceLeft -= at - this.#end;
    this.#silence(at - this.#end);
    return at;
  }

  #grid(exact: number, count: number): number {
    const { anchor, sampleRate } = this.#format;
    const onGrid = anchor + Math.round((exact - anchor) / count) * count;
    return Math.abs(onGrid - exact) <= ROUNDING_SECONDS * sampleRate ? onGrid : Math.round(exact);
  }

  #write(samples: Samples, gain: number): void {
    const count = samples.channels[0]!.length;
    for (let from = 0; from < count; ) {
      const offset = this.#offset();
      const to = Math.min(count, from + BLOCK_SAMPLES - offset);
      mixInto(samples, [from, to], this.#format.channels, gain, this.#block, offset);
      this.#advance(to - from);
      from = to;
    }
  }

  #silence(count: number): void {
    for (let left = count; left > 0; ) {
      const step = Math.min(left, BLOCK_SAMPLES - this.#offset());
      this.#advance(step);
      left -= step;
    }
  }

  #offset(): number {
    return this.#end! - this.endBlock * BLOCK_SAMPLES;
  }

  #advance(count: number): void {
    this.#end! += count;
    if (this.#offset() !== 0) return;
    const limited = this.#limiter.push(this.#block);
    if (limited) this.#output(limited);
    this.#block = this.#emptyBlock();
  }

  #emptyBlock(): Float32Array {
    return this.#free.pop()?.fill(0) ?? new Float32Array(BLOCK_SAMPLES * this.#format.channels);
  }
}
