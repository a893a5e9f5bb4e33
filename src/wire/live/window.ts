import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../../base/bytes.ts";
import { expectBytes, LIVE_KIND } from "./message-kind.ts";

/** The pieces that a peer has, and its load (WIN). Sent to each neighbour four times a second, so it has a fixed length and is
 * decoded into a reusable object. */
export interface LiveWindow {
  epoch: number;
  /** Oldest piece kept. All pieces in `[oldestSeq, baseSeq)` are present, except skipped ones. */
  oldestSeq: number;
  /** First piece that `runs` cover. */
  baseSeq: number;
  /** For each stripe, number of contiguous chunks from `baseSeq` on (255 means at least 255). */
  readonly runs: Uint8Array;
  /** For each stripe, bitmap of the 16 chunks after the first missing one; bit 0 is the nearest. */
  readonly beyond: Uint16Array;
  /** The peer accepts further children, and would send this many more stripes. */
  isOpen: boolean;
  freeSlots: number;
  /** Time for which a chunk waits in the send queue. */
  queueMs: number;
  /** Delay of the newest complete piece, relative to the fastest delivery seen; needs no synchronized clocks. */
  lagMs: number;
}

const FIXED_BYTES = 24;
const OPEN = 1;

/** Returns the length of a WIN: 24 bytes, and 3 per stripe. */
export function windowBytes(stripeCount: number): number {
  return FIXED_BYTES + 3 * stripeCount;
}

/** Creates a window without any pieces. */
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

/** Encodes a WIN into `bytes`, which has its length. Numbers that do not fit are clamped. */
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

/** Decodes a WIN into `window`, which has the stripe count of the stream. Throws `DecodeError` and leaves `window` unchanged. */
export function readWindow(bytes: Uint8Array, window: LiveWindow): void {
  expectBytes(bytes, windowBytes(window.runs.length));
  window.isOpen = (bytes[1]! & OPEN) !== 0;
  window.freeSlots = readU16(bytes, 2);
  window.epoch = readU32(bytes, 4);
  // A base before the oldest piece means that no piece is complete.
  window.oldestSeq = readU48(bytes, 8);
  window.baseSeq = Math.max(window.oldestSeq, readU48(bytes, 14));
  window.queueMs = readU16(bytes, 20);
  window.lagMs = readU16(bytes, 22);
  for (let stripe = 0, at = FIXED_BYTES; stripe < window.runs.length; stripe++, at += 3) {
    window.runs[stripe] = bytes[at]!;
    window.beyond[stripe] = readU16(bytes, at + 1);
  }
}

/** Returns true if a chunk is present according to a window. Chunks before its base may have been skipped nevertheless. */
export function windowHas(window: LiveWindow, seq: number, stripe: number): boolean {
  if (seq < window.baseSeq) return seq >= window.oldestSeq;
  const past = seq - window.baseSeq - window.runs[stripe]!;
  if (past < 0) return true;
  return past >= 1 && past <= 16 && (window.beyond[stripe]! & (1 << (past - 1))) !== 0;
}
