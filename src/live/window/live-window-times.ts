import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { leadingStream, streamsOf } from "../../media/ts-programme.ts";
import { TableReader } from "../../media/ts-tables.ts";
import { nextUnit } from "../../media/ts-units.ts";
import type { PieceHeader } from "../../wire/live/header.ts";
import type { KeptSegment } from "./live-window-segment.ts";

/** Number of packets after a random access point in which the tables are expected; the source writes one or two each. */
const TABLE_PACKETS = 64;
/** A silence of this length is a discontinuity for players; the source treats clock steps the same way. */
const MAX_SILENCE_MS = 3000;
/** Input may be 2 s ahead of its clock, and a source catches up after a pause: media may exceed the elapsed time by
 * this much. */
const MAX_AHEAD_MS = 5000;
/** Maximum segment duration that players are given, whatever the source signs. */
const MAX_DURATION_MS = 60_000;
/** Allowed jitter between the programme clock and the time of day. */
const MAX_JITTER_MS = 1000;

/** Estimates when the source received the byte at `at` of a piece, in UNIX ms, from its header. */
export function timeInPiece({ timestampMs, spanMs, pieceBytes }: PieceHeader, at: number): number {
  return pieceBytes === 0 ? timestampMs : Math.round(timestampMs - spanMs * (1 - at / pieceBytes));
}

/** Returns the decode time of the first access unit after the tables at `at`, in 90 kHz ticks; undefined if it cannot
 * be read. */
export function decodeTicksAt(packets: Uint8Array, at: number): number | undefined {
  const reader = new TableReader();
  const end = Math.min(packets.length, at + TABLE_PACKETS * TS_PACKET_BYTES);
  for (let next = at; next + TS_PACKET_BYTES <= end && !reader.tables(false); next += TS_PACKET_BYTES)
    if (reader.wants(pidAt(packets, next))) reader.push(packets, next);
  const tables = reader.tables(true);
  const leading = tables && leadingStream(streamsOf(tables.pmt));
  return leading && nextUnit(packets, at, leading)?.dts;
}

/** A value of the programme clock, and its time. */
export interface ClockSample {
  /** Ticks of 27 MHz. */
  readonly reference: number;
  readonly timestampMs: number;
}

/** Whether the programme clock has advanced like the time of day; false if that is not known. */
export function isContinuous(before: ClockSample | undefined, after: ClockSample | undefined): boolean {
  if (!before || !after) return false;
  const ticks = deltaTicks(Math.floor(after.reference / 300), Math.floor(before.reference / 300));
  const passedMs = after.timestampMs - before.timestampMs;
  return Math.abs((1000 * ticks) / TICKS_PER_SECOND - passedMs) <= MAX_JITTER_MS;
}

/** Whether the source was silent for so long that players need a discontinuity. */
export function hasLongSilence(segment: KeptSegment): boolean {
  return segment.silentMs >= MAX_SILENCE_MS;
}

/** Returns the playing time, in ms, of a segment that ends now: the difference of the decode times of its first unit
 * and that of the next segment, which is exact and equal on all engines; the elapsed time if those are not usable. */
export function durationMsOf(segment: KeptSegment, nextTicks: number | undefined): number {
  const { facts, endMs, mediaEnd, silentMs, decodeTicks } = segment;
  const silent = hasLongSilence(segment) ? silentMs : 0;
  const passedMs = (mediaEnd?.timeMs ?? endMs) - facts.startMs - silent;
  let durationMs = passedMs;
  if (!mediaEnd && decodeTicks !== undefined && nextTicks !== undefined) {
    const playedMs = (1000 * deltaTicks(nextTicks, decodeTicks)) / TICKS_PER_SECOND;
    if (playedMs > 0 && playedMs <= passedMs + MAX_AHEAD_MS) durationMs = playedMs;
    if (silent > 0) durationMs = Math.min(durationMs, passedMs + MAX_JITTER_MS);
  }
  return Math.min(MAX_DURATION_MS, Math.max(1, durationMs));
}

/** Values are kept for one to two times this period, so that one odd segment does not slow players down forever. */
const PERIOD_MS = 3_600_000;

/** The maximum of recent values. */
export class RecentMaximum {
  #sinceMs = Number.NEGATIVE_INFINITY;
  #previous = 0;
  #current = 0;

  get value(): number {
    return Math.max(this.#previous, this.#current);
  }

  /** Adds a value of the time `atMs`. */
  add(value: number, atMs: number): void {
    if (Math.abs(atMs - this.#sinceMs) > PERIOD_MS) {
      this.#previous = this.#current;
      this.#current = 0;
      this.#sinceMs = atMs;
    }
    this.#current = Math.max(this.#current, value);
  }
}
