import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { leadingStream, streamsOf } from "../../media/ts-programme.ts";
import { TableReader } from "../../media/ts-tables.ts";
import { nextUnit } from "../../media/ts-units.ts";
import type { PieceHeader } from "../../wire/live-header.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Tables are within so many packets of the place where a player can begin: one or two each, as the source puts them. */
const TABLE_PACKETS = 64;
/** Silence of this length tears the timeline of a segment; the source looks at steps of the clock in the same way. */
const LONG_SILENCE_MS = 3000;
/** A pipe may be 2 s ahead of its clock, and a source catches up after a pause: so much more may play than time has passed. */
const AHEAD_MS = 5000;
/** Whatever a source says, a player is never told to wait longer for what comes next. */
const MAX_DURATION_MS = 60_000;
/** The programme's clock and the time of day go on together, but for jitter. */
const MAX_STRAY_MS = 1000;

/** When the byte at `at` of a piece came to the source, in UNIX ms, as far as its header tells. */
export function timeInPiece({ timestampMs, spanMs, pieceBytes }: PieceHeader, at: number): number {
  return pieceBytes === 0 ? timestampMs : Math.round(timestampMs - spanMs * (1 - at / pieceBytes));
}

/** The decode time of the first unit after the tables at `at`, in ticks of 90 kHz; undefined where there is none to be read. */
export function decodeTicksAt(packets: Uint8Array, at: number): number | undefined {
  const reader = new TableReader();
  const end = Math.min(packets.length, at + TABLE_PACKETS * TS_PACKET_BYTES);
  for (let next = at; next + TS_PACKET_BYTES <= end && !reader.tables(false); next += TS_PACKET_BYTES)
    if (reader.wants(pidAt(packets, next))) reader.push(packets, next);
  const tables = reader.tables(true);
  const leading = tables && leadingStream(streamsOf(tables.pmt));
  return leading && nextUnit(packets, at, leading)?.dts;
}

/** The clock of the programme, and when it said so. */
export interface ClockSight {
  /** Ticks of 27 MHz. */
  readonly reference: number;
  readonly timestampMs: number;
}

/** Whether the programme's clock has gone on as the time of day has; false where it cannot be told. */
export function hasGoneOn(before: ClockSight | undefined, after: ClockSight | undefined): boolean {
  if (!before || !after) return false;
  const ticks = deltaTicks(Math.floor(after.reference / 300), Math.floor(before.reference / 300));
  const passedMs = after.timestampMs - before.timestampMs;
  return Math.abs((1000 * ticks) / TICKS_PER_SECOND - passedMs) <= MAX_STRAY_MS;
}

/** Whether the source was silent for so long that players cannot go on as if nothing had happened. */
export function isTorn(segment: KeptSegment): boolean {
  return segment.silentMs >= LONG_SILENCE_MS;
}

/**
 * How long a segment plays that ends now, in ms: by the decode times of its first unit and of that of the next segment, which say it to
 * the tick on all engines; by the time of day where they do not say it.
 */
export function durationMsOf(segment: KeptSegment, nextTicks: number | undefined): number {
  const { facts, endMs, mediaEnd, silentMs, decodeTicks } = segment;
  const silent = isTorn(segment) ? silentMs : 0;
  const passedMs = (mediaEnd?.timeMs ?? endMs) - facts.startMs - silent;
  let durationMs = passedMs;
  if (!mediaEnd && decodeTicks !== undefined && nextTicks !== undefined) {
    const playedMs = (1000 * deltaTicks(nextTicks, decodeTicks)) / TICKS_PER_SECOND;
    if (playedMs > 0 && playedMs <= passedMs + AHEAD_MS) durationMs = playedMs;
    if (silent > 0) durationMs = Math.min(durationMs, passedMs + MAX_STRAY_MS);
  }
  return Math.min(MAX_DURATION_MS, Math.max(1, durationMs));
}

/** Durations are forgotten after one or two times this: one odd segment must not slow players down for ever. */
const LATELY_MS = 3_600_000;

/** The largest of the values of late. */
export class LongestLately {
  #sinceMs = Number.NEGATIVE_INFINITY;
  #before = 0;
  #now = 0;

  get value(): number {
    return Math.max(this.#before, this.#now);
  }

  /** Takes a value of the time `atMs`. */
  add(value: number, atMs: number): void {
    if (Math.abs(atMs - this.#sinceMs) > LATELY_MS) {
      this.#before = this.#now;
      this.#now = 0;
      this.#sinceMs = atMs;
    }
    this.#now = Math.max(this.#now, value);
  }
}
