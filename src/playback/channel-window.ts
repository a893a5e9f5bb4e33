import { sleep } from "../async/sleep.ts";
import type { LiveWindow } from "../live/window/live-window.ts";
import { PieceCutter } from "../media/live-cut.ts";
import type { LivePiece } from "../media/live-piece.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { clockReferenceAt } from "../media/ts-clock.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Channel } from "./channel.ts";

/** As for broadcasts: short enough for players that start with the newest key frame. */
export const SEGMENT_MS = 2_000;
/** Parts for players with low latency are a multiple of this. */
export const PIECE_MS = 250;
/** 250 ms of 64 Mbit/s. */
const MAX_PIECE_BYTES = 2 * 1024 * 1024;
/** Media that a source sends at once when it is opened lies this far behind the present; see `CHOICE(start-backlog)`. */
const BACKLOG_MS = 7_000;
/** The media may be this far behind the time of day: it falls back when a source was silent. */
const MAX_BEHIND_MS = 15_000;
/** A larger step of the clock is not elapsed time. */
const MAX_STEP_TICKS = 3 * TICKS_PER_SECOND;
const NO_HASH = new Uint8Array(0);

/**
 * Writes a channel into a window. The time of the media is that of its clock, so that segments are as long in the window as they play,
 * although sources send seconds at once. Nothing is read that is ahead of the time of day.
 */
export class WindowFeed {
  readonly #clock: Clock;
  readonly #window: LiveWindow;
  readonly #cutter = new PieceCutter({
    pieceMs: PIECE_MS,
    maxPieceBytes: MAX_PIECE_BYTES,
    segmentMs: SEGMENT_MS,
  });
  /** The time of the media, in UNIX ms. */
  #timeMs = 0;
  #lastTicks: number | undefined;
  #start = { at: 0, ms: 0 };
  #seq = 0;
  #bytes = 0;

  constructor(clock: Clock, window: LiveWindow) {
    this.#clock = clock;
    this.#window = window;
  }

  /** The size of all media so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Writes what `channel` delivers until it or `signal` ends; `first` is its first delivery. Rejects as the channel does. */
  async run(channel: Channel, first: Promise<Uint8Array | undefined>, signal: AbortSignal): Promise<void> {
    this.#start = { at: this.#clock.now(), ms: 1000 * this.#clock.unixSeconds() };
    let joints = 0;
    for (let next = first; ; next = channel.next()) {
      const packets = await next;
      if (packets === undefined || signal.aborted) return;
      if (channel.joints !== joints) this.#join();
      joints = channel.joints;
      this.#write(packets);
      const aheadMs = this.#timeMs - this.#unixMs();
      if (aheadMs > 0) await sleep(this.#clock, aheadMs, signal);
      if (signal.aborted) return;
    }
  }

  /** What follows comes from another source. */
  #join(): void {
    this.#timeMs = Math.max(this.#timeMs, this.#unixMs() - BACKLOG_MS);
    this.#lastTicks = undefined;
    this.#add(this.#cutter.break(this.#timeMs));
  }

  #write(packets: Uint8Array): void {
    this.#bytes += packets.length;
    this.#timeMs = Math.max(this.#timeMs, this.#unixMs() - MAX_BEHIND_MS);
    let from = 0;
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
      const reference = clockReferenceAt(packets, at);
      if (reference === undefined) continue;
      this.#add(this.#cutter.push(packets.subarray(from, at), this.#timeMs));
      from = at;
      const ticks = Math.floor(reference / 300);
      const step = this.#lastTicks === undefined ? 0 : deltaTicks(ticks, this.#lastTicks);
      this.#lastTicks = ticks;
      if (step > 0 && step < MAX_STEP_TICKS) this.#timeMs += (1000 * step) / TICKS_PER_SECOND;
    }
    this.#add(this.#cutter.push(packets.subarray(from), this.#timeMs));
  }

  #add(pieces: readonly LivePiece[]): void {
    for (const piece of pieces) {
      const { bytes, timestampMs, ...facts } = piece;
      const header = {
        ...facts,
        timestampMs: Math.floor(timestampMs),
        epoch: 1,
        seq: this.#seq++,
        isEnd: false,
        pieceBytes: bytes.length,
        previousHash: NO_HASH,
        chunkHashes: NO_HASH,
      };
      this.#window.piece(header, [bytes]);
    }
  }

  /** The time of day; the clock has whole seconds only. */
  #unixMs(): number {
    return this.#start.ms + (this.#clock.now() - this.#start.at);
  }
}
