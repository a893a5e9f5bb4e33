import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../base/bytes.ts";
import { expectBytes, LIVE_KIND } from "./live-kinds.ts";

/** What a peer has, and how it is (WIN). Sent four times a second to everybody near, so it has a fixed length and is read
 * into an object that is used again. */
export interface LiveWindow {
  epoch: number;
  /** The oldest piece that is kept. From here to before `baseSeq` everything is there, but for what was skipped. */
  oldestSeq: number;
  /** The piece that `runs` count from. */
  baseSeq: number;
  /** For each stripe, how many chunks from the base on are there without a gap (255: or more). */
  readonly runs: Uint8Array;
  /** For each stripe, which of the 16 chunks behind the first gap are there; bit 0 is the nearest. */
  readonly beyond: Uint16Array;
  /** Whether further children are welcome, and how many stripes more would be sent. */
  isOpen: boolean;
  freeSlots: number;
  /** How long a chunk waits before it is on its way to a child. */
  queueMs: number;
  /** How far the newest complete piece is behind the stream, beside the quickest that was seen; needs no common clock. */
  lagMs: number;
}

const FIXED_BYTES = 24;
const OPEN = 1;

/** The size of a WIN: 24 bytes, and 3 for each stripe. */
export function windowBytes(stripeCount: number): number {
  return FIXED_BYTES + 3 * stripeCount;
}

/** A window that says that nothing is there, to be read or filled into. */
export function emptyWindow(stripeCount: number): LiveWindow {
  return {
    epoch: 0,
    oldestSeq: 0,
    baseSeq: 0,
    runs: new Uint8Array(stripeCount),
    beyond: new Uint16Array(stripeCount),
    isOpen: false,
    freeSlots: 0,
    queueMs: 0,
    lagMs: 0,
  };
}

/** Writes a WIN into `bytes`, which has its size. Figures beyond what fits are written as the most that does. */
export function writeWindow(bytes: Uint8Array, window: LiveWindow): void {
  bytes[0] = LIVE_KIND.window;
  bytes[1] = window.isOpen ? OPEN : 0;
  writeU16(bytes, 2, Math.min(window.freeSlots, 0xffff));
  writeU32(bytes, 4, window.epoch);
  writeU48(bytes, 8, window.oldestSeq);
  writeU48(bytes, 14, window.baseSeq);
  writeU16(bytes, 20, Math.min(window.queueMs, 0xffff));
  writeU16(bytes, 22, Math.min(window.lagMs, 0xffff));
  for (let stripe = 0, at = FIXED_BYTES; stripe < window.runs.length; stripe++, at += 3) {
    bytes[at] = window.runs[stripe]!;
    writeU16(bytes, at + 1, window.beyond[stripe]!);
  }
}

/** Reads a WIN into `window`, whose stripes are those of the stream. Throws `DecodeError`, with `window` unchanged. */
export function readWindow(bytes: Uint8Array, window: LiveWindow): void {
  expectBytes(bytes, windowBytes(window.runs.length));
  window.isOpen = (bytes[1]! & OPEN) !== 0;
  window.freeSlots = readU16(bytes, 2);
  window.epoch = readU32(bytes, 4);
  // Whoever names a base before the oldest has nothing complete.
  window.oldestSeq = readU48(bytes, 8);
  window.baseSeq = Math.max(window.oldestSeq, readU48(bytes, 14));
  window.queueMs = readU16(bytes, 20);
  window.lagMs = readU16(bytes, 22);
  for (let stripe = 0, at = FIXED_BYTES; stripe < window.runs.length; stripe++, at += 3) {
    window.runs[stripe] = bytes[at]!;
    window.beyond[stripe] = readU16(bytes, at + 1);
  }
}

/** Whether a window says that a chunk is there. What lies before its base may have been skipped all the same. */
export function windowHas(window: LiveWindow, seq: number, stripe: number): boolean {
  if (seq < window.baseSeq) return seq >= window.oldestSeq;
  const past = seq - window.baseSeq - window.runs[stripe]!;
  if (past < 0) return true;
  return past >= 1 && past <= 16 && (window.beyond[stripe]! & (1 << (past - 1))) !== 0;
}
