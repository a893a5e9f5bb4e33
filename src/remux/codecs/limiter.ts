/** Samples per block: a frame of AAC. */
export const BLOCK_SAMPLES = 1024;

/** The highest sample after limiting; below full scale, because encoding adds a little. */
const CEILING = 0.95;
/** Blocks until the gain has returned to normal: 170 ms at 48 kHz. */
const RELEASE_BLOCKS = 8;

/**
 * Lowers the gain around blocks that would clip. The gain is a function of the eight blocks before a block and the one after it, so
 * that two limiters agree after eight blocks, wherever they began.
 */
export class Limiter {
  readonly #channels: number;
  /** The gains that recent blocks permit, oldest first. */
  #permitted: number[] = [];
  #waiting: Float32Array | undefined;
  #startGain = 1;

  constructor(channels: number) {
    this.#channels = channels;
  }

  /** Takes the next interleaved block; returns the block before it, changed in place; undefined for the first one. */
  push(block: Float32Array): Float32Array | undefined {
    let peak = 0;
    // Several times as fast as an iterator.
    for (let i = 0; i < block.length; i++) {
      const level = Math.abs(block[i]!);
      if (level > peak) peak = level;
    }
    this.#permitted.push(peak > CEILING ? CEILING / peak : 1);
    if (this.#permitted.length > RELEASE_BLOCKS + 2) this.#permitted.shift();
    const done = this.#waiting;
    this.#waiting = block;
    const endGain = this.#gain();
    if (done && (this.#startGain < 1 || endGain < 1)) scale(done, this.#channels, this.#startGain, endGain);
    this.#startGain = endGain;
    return done;
  }

  /** The gain at the border before the newest block: neither neighbour clips, and it rises slowly after a loud block. */
  #gain(): number {
    const last = this.#permitted.length - 1;
    let gain = 1;
    for (let back = 0; back <= last; back++) {
      const permitted = this.#permitted[last - back]!;
      // The newest block and the one before it touch this border.
      const passed = Math.max(0, back - 1) / RELEASE_BLOCKS;
      gain = Math.min(gain, permitted + (1 - permitted) * Math.min(1, passed));
    }
    return gain;
  }
}

function scale(block: Float32Array, channels: number, from: number, to: number): void {
  const step = ((to - from) * channels) / block.length;
  let gain = from;
  for (let i = 0; i < block.length; i += channels, gain += step)
    for (let channel = i; channel < i + channels; channel++) block[channel] = block[channel]! * gain;
}
