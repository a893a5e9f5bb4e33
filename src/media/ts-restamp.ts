import { DecodeError } from "../base/errors.ts";
import { readPesHeader, shiftPesTimes } from "./pes.ts";
import { deltaTicks, wrapTicks } from "./timestamps.ts";
import { clockReferenceAt } from "./ts-clock.ts";
import { isUnitStartAt, NULL_PID, payloadStartAt, pidAt, TS_PACKET_BYTES, writePcr } from "./ts-packet.ts";

/** The times of a stream within one pass over the file. */
interface Span {
  /** The last decode time, and the latest time of presentation. */
  readonly last: number;
  readonly shown: number;
  /** Ticks from the first unit to the last, across a wrap. */
  readonly ticks: number;
  /** The longest duration of a unit lately: the next one begins no earlier after the last. */
  readonly step: number;
}

/** A larger step between two units is a gap, not a frame duration. */
const MAX_STEP_TICKS = 90_000;
/** How fast a larger step between units is forgotten. */
const STEP_DECAY = 0.95;
/** Steps of the clock outside these limits are jumps. */
const MAX_BACK_TICKS = 45_000;
const MAX_AHEAD_TICKS = 3 * 90_000;
/** If the decode times of a stream move further against the clock, the clock is about to jump. */
const MAX_LEAD_CHANGE_TICKS = 10 * 90_000;
/** Limit of tracked PIDs; packets on further PIDs pass unchanged. */
const MAX_PIDS = 256;

/** The first times of a stream that is joined, in 90 kHz ticks. */
export interface FirstTimes {
  readonly dts: number;
  readonly pts: number;
  /** Undefined if no PCR is known yet. */
  readonly clock: number | undefined;
}

/**
 * Makes a looped file, or several streams one after the other, one continuous stream: from the second pass or stream on, it shifts PCR, PTS
 * and DTS and renumbers the continuity counters. The first is unchanged.
 */
export class TsRestamper {
  #offset = 0;
  #spans = new Map<number, Span>();
  /** The durations of units of the stream before, for PIDs that have only one unit since. */
  #lastSteps: ReadonlyMap<number, number> = new Map();
  readonly #sourceCounters = new Map<number, number>();
  readonly #writtenCounters = new Map<number, number>();
  /** The last PCR as written, in 90 kHz ticks. */
  #lastClock: number | undefined;
  /** The last PCR of the stream as it is, in 90 kHz ticks. */
  #sourceClock: number | undefined;
  /** How far the decode times are ahead of the clock, by PID. */
  readonly #leads = new Map<number, number>();

  /** Starts another stream, whose first times are given. Its first unit follows the last one, and is shown after all; the PCR does not go back. */
  join({ dts, pts, clock }: FirstTimes): void {
    let end: number | undefined;
    const reorderTicks = deltaTicks(pts, dts);
    for (const { last, shown, step } of this.#spans.values())
      for (const time of [last, shown - reorderTicks]) {
        const next = wrapTicks(time + step + this.#offset);
        if (end === undefined || deltaTicks(next, end) > 0) end = next;
      }
    this.#lastSteps = new Map([...this.#spans].map(([pid, { step }]) => [pid, step]));
    this.#spans = new Map();
    this.#sourceCounters.clear();
    this.#sourceClock = undefined;
    this.#leads.clear();
    if (end === undefined) return;
    this.#offset = deltaTicks(end, dts);
    if (clock === undefined || this.#lastClock === undefined) return;
    const aheadTicks = deltaTicks(wrapTicks(clock + this.#offset), this.#lastClock);
    if (aheadTicks <= 0) this.#offset += 1 - aheadTicks;
  }

  /** Starts the next pass: the next packets are from the start of the file. */
  restart(): void {
    let ticks = 0;
    for (const span of this.#spans.values()) ticks = Math.max(ticks, span.ticks + span.step);
    this.#offset += ticks;
    this.#spans = new Map();
    this.#sourceCounters.clear();
  }

  /** Returns the offset of the first packet whose clock or decode time does not continue the stream; undefined if all do. Call it before
   * `restamp` with the same packets. */
  jumpAt(packets: Uint8Array): number | undefined {
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === NULL_PID) continue;
      const reference = clockReferenceAt(packets, at);
      if (reference !== undefined) {
        const ticks = Math.floor(reference / 300);
        const step = this.#sourceClock === undefined ? 0 : deltaTicks(ticks, this.#sourceClock);
        if (step < -MAX_BACK_TICKS || step > MAX_AHEAD_TICKS) return at;
        this.#sourceClock = ticks;
      }
      const dts = isUnitStartAt(packets, at) ? timesAt(packets, at)?.dts : undefined;
      if (dts === undefined || this.#sourceClock === undefined) continue;
      const lead = deltaTicks(dts, this.#sourceClock);
      const before = this.#leads.get(pid) ?? lead;
      if (Math.abs(lead - before) > MAX_LEAD_CHANGE_TICKS) return at;
      if (this.#leads.has(pid) || this.#leads.size < MAX_PIDS) this.#leads.set(pid, lead);
    }
    return undefined;
  }

  /** Adjusts whole packets in place. */
  restamp(packets: Uint8Array): void {
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === NULL_PID) continue;
      this.#renumber(packets, at, pid);
      this.#shift(packets, at, pid);
    }
  }

  /** Renumbers the continuity counter. Gaps within the file are kept; there is none between two passes. */
  #renumber(packets: Uint8Array, at: number, pid: number): void {
    const received = packets[at + 3]! & 15;
    const last = this.#writtenCounters.get(pid);
    if (last === undefined && this.#writtenCounters.size >= MAX_PIDS) return;
    const hasPayload = (packets[at + 3]! & 0x10) !== 0;
    const before = this.#sourceCounters.get(pid);
    const step = before === undefined ? (hasPayload ? 1 : 0) : (received - before) & 15;
    const counter = last === undefined ? received : (last + step) & 15;
    packets[at + 3] = (packets[at + 3]! & 0xf0) | counter;
    this.#sourceCounters.set(pid, received);
    this.#writtenCounters.set(pid, counter);
  }

  #shift(packets: Uint8Array, at: number, pid: number): void {
    const reference = clockReferenceAt(packets, at);
    if (reference !== undefined) this.#lastClock = wrapTicks(Math.floor(reference / 300) + this.#offset);
    if (reference !== undefined && this.#offset !== 0) {
      const extension = [packets[at + 10]! & 0x7f, packets[at + 11]!] as const;
      writePcr(packets, at + 6, this.#lastClock!);
      packets[at + 10] = (packets[at + 10]! & 0x80) | extension[0];
      packets[at + 11] = extension[1];
    }
    if (!isUnitStartAt(packets, at)) return;
    const times = timesAt(packets, at);
    if (times === undefined) return;
    this.#measure(pid, times);
    if (this.#offset !== 0) shiftPesTimes(packets, payloadStartAt(packets, at), this.#offset);
  }

  #measure(pid: number, { dts, pts }: { readonly dts: number; readonly pts: number }): void {
    const before = this.#spans.get(pid);
    if (!before && this.#spans.size >= MAX_PIDS) return;
    const step = before ? deltaTicks(dts, before.last) : 0;
    const isNext = step > 0 && step < MAX_STEP_TICKS;
    this.#spans.set(pid, {
      last: dts,
      shown: before && isNext && deltaTicks(pts, before.shown) < 0 ? before.shown : pts,
      ticks: (before?.ticks ?? 0) + Math.max(0, step),
      // Units of sound hold several frames, and not always the same number.
      step: Math.max(
        isNext ? step : 0,
        Math.floor((before?.step ?? this.#lastSteps.get(pid) ?? 0) * STEP_DECAY),
      ),
    });
  }
}

/** Returns the times of the unit that starts in the packet at offset `at`; undefined if it has none. */
function timesAt(
  packets: Uint8Array,
  at: number,
): { readonly dts: number; readonly pts: number } | undefined {
  try {
    const { dts, pts } = readPesHeader(packets, payloadStartAt(packets, at), at + TS_PACKET_BYTES);
    return dts === undefined || pts === undefined ? undefined : { dts, pts };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error; // A section or a damaged header has no times.
    return undefined;
  }
}
