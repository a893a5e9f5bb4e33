import { DecodeError } from "../base/errors.ts";
import { readPesHeader, shiftPesTimes } from "./pes.ts";
import { deltaTicks, wrapTicks } from "./timestamps.ts";
import { clockReferenceAt } from "./ts-clock.ts";
import { isUnitStartAt, NULL_PID, payloadStartAt, pidAt, TS_PACKET_BYTES, writePcr } from "./ts-packet.ts";

/** A stream of one round of a file, as its units went by. */
interface Span {
  readonly last: number;
  /** Ticks from the first to the last, over any wrap. */
  readonly ticks: number;
  readonly step: number;
}

/** A unit this much later than the one before is not the next frame. */
const MAX_STEP_TICKS = 90_000;
/** Packets of a file have at most so many PIDs; others are passed on as they are. */
const MAX_PIDS = 256;

/**
 * Lets a file that begins again go on where it ended: its clock, its times and its continuity counters count on, so that a player sees
 * one stream without end. Of the first round no bit is changed.
 */
export class TsRestamper {
  #offset = 0;
  #spans = new Map<number, Span>();
  readonly #came = new Map<number, number>();
  readonly #written = new Map<number, number>();

  /** The next packets are the first of the file again. */
  restart(): void {
    let ticks = 0;
    for (const span of this.#spans.values()) ticks = Math.max(ticks, span.ticks + span.step);
    this.#offset += ticks;
    this.#spans = new Map();
    this.#came.clear();
  }

  /** Changes whole packets in place. */
  restamp(packets: Uint8Array): void {
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === NULL_PID) continue;
      this.#count(packets, at, pid);
      this.#shift(packets, at, pid);
    }
  }

  /** A hole in the file stays a hole; the seam is none. */
  #count(packets: Uint8Array, at: number, pid: number): void {
    const came = packets[at + 3]! & 15;
    const last = this.#written.get(pid);
    if (last === undefined && this.#written.size >= MAX_PIDS) return;
    const hasPayload = (packets[at + 3]! & 0x10) !== 0;
    const before = this.#came.get(pid);
    const step = before === undefined ? (hasPayload ? 1 : 0) : (came - before) & 15;
    const counter = last === undefined ? came : (last + step) & 15;
    packets[at + 3] = (packets[at + 3]! & 0xf0) | counter;
    this.#came.set(pid, came);
    this.#written.set(pid, counter);
  }

  #shift(packets: Uint8Array, at: number, pid: number): void {
    const reference = this.#offset > 0 ? clockReferenceAt(packets, at) : undefined;
    if (reference !== undefined) {
      const extension = [packets[at + 10]! & 0x7f, packets[at + 11]!] as const;
      writePcr(packets, at + 6, wrapTicks(Math.floor(reference / 300) + this.#offset));
      packets[at + 10] = (packets[at + 10]! & 0x80) | extension[0];
      packets[at + 11] = extension[1];
    }
    if (!isUnitStartAt(packets, at)) return;
    const body = payloadStartAt(packets, at);
    try {
      const { dts } = readPesHeader(packets, body, at + TS_PACKET_BYTES);
      if (dts === undefined) return;
      this.#measure(pid, dts);
      if (this.#offset > 0) shiftPesTimes(packets, body, this.#offset);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error; // A section, or a damaged header: it has no times.
    }
  }

  #measure(pid: number, dts: number): void {
    const before = this.#spans.get(pid);
    if (!before && this.#spans.size >= MAX_PIDS) return;
    const step = before ? deltaTicks(dts, before.last) : 0;
    const isNext = step > 0 && step < MAX_STEP_TICKS;
    this.#spans.set(pid, {
      last: dts,
      ticks: (before?.ticks ?? 0) + Math.max(0, step),
      step: isNext ? step : (before?.step ?? 0),
    });
  }
}
