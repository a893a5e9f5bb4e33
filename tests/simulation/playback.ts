import type { ByteRange } from "../../src/base/range.ts";

/** How a simulated player plays. Rates in bytes a second, times in ms of media. */
export interface PlaybackOptions {
  readonly range: ByteRange;
  readonly bytesPerSecond: number;
  /** Media buffered before playback starts, and before it continues after a stall. */
  readonly startMs: number;
  /** How far ahead of the player the reader requests. */
  readonly readAheadBytes: number;
  readonly urgentBytes: number;
}

/** What a player experienced. Times in ms of the simulation. */
export interface PlaybackReport {
  /** From opening to the first byte, and to the first picture. */
  firstByteMs: number | undefined;
  startMs: number | undefined;
  stalls: number;
  stalledMs: number;
  longestStallMs: number;
  isComplete: boolean;
}

/** A player over verified pieces: starts when enough is buffered, consumes at its bitrate, and stalls if
 * the next byte is missing. */
export class Playback {
  readonly options: PlaybackOptions;
  readonly report: PlaybackReport = {
    firstByteMs: undefined,
    startMs: undefined,
    stalls: 0,
    stalledMs: 0,
    longestStallMs: 0,
    isComplete: false,
  };
  readonly #openedAt: number;
  readonly #pieceLength: number;
  readonly #isHeld: (piece: number) => boolean;
  /** The first byte that was not played yet, and the first one that is not held yet. */
  #position: number;
  #head: number;
  #updatedAt: number;
  #stalledAt: number | undefined;

  constructor(
    options: PlaybackOptions,
    pieceLength: number,
    isHeld: (piece: number) => boolean,
    now: number,
  ) {
    this.options = options;
    this.#pieceLength = pieceLength;
    this.#isHeld = isHeld;
    this.#openedAt = now;
    this.#updatedAt = now;
    this.#position = options.range.start;
    this.#head = options.range.start;
  }

  get position(): number {
    return Math.floor(this.#position);
  }

  /** The range that the reader needs now. */
  get wanted(): ByteRange {
    const { range, readAheadBytes } = this.options;
    return { start: this.position, end: Math.min(range.end, this.position + readAheadBytes) };
  }

  /** Advances the player to `now`. */
  update(now: number): void {
    const { range, bytesPerSecond, startMs } = this.options;
    const { report } = this;
    if (report.isComplete) return;
    const elapsed = now - this.#updatedAt;
    this.#updatedAt = now;
    const isPlaying = report.startMs !== undefined && this.#stalledAt === undefined;
    if (isPlaying) this.#position = Math.min(this.#head, this.#position + (elapsed * bytesPerSecond) / 1000);
    this.#advanceHead();
    if (this.#head > range.start) report.firstByteMs ??= now - this.#openedAt;
    if (this.#position >= range.end) {
      report.isComplete = true;
      return;
    }
    const hasEnough =
      this.#head >= range.end || this.#head - this.#position >= (startMs * bytesPerSecond) / 1000;
    if (report.startMs === undefined) {
      if (hasEnough) report.startMs = now - this.#openedAt;
    } else if (this.#stalledAt !== undefined) {
      if (hasEnough) this.#endStall(now);
    } else if (this.#position >= this.#head) {
      this.#stalledAt = now;
      report.stalls++;
    }
  }

  #endStall(now: number): void {
    const length = now - this.#stalledAt!;
    this.#stalledAt = undefined;
    this.report.stalledMs += length;
    this.report.longestStallMs = Math.max(this.report.longestStallMs, length);
  }

  #advanceHead(): void {
    const { end } = this.options.range;
    while (this.#head < end) {
      const piece = Math.floor(this.#head / this.#pieceLength);
      if (!this.#isHeld(piece)) return;
      this.#head = Math.min(end, (piece + 1) * this.#pieceLength);
    }
  }
}
