import { PacketAligner } from "./ts-align.ts";
import { isUnitStartAt, NULL_PID, payloadStartAt, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "./ts-programme.ts";
import { TableReader } from "./ts-tables.ts";
import { nextUnit, unitHead } from "./ts-units.ts";

/** A complete unit of the leading stream: a picture, or a packet of sound if there is no video. */
export interface ScannedUnit {
  /** 90 kHz ticks. */
  readonly dts: number;
  readonly isKey: boolean;
  /** Bytes of its transport packets. */
  readonly bytes: number;
  /** A 32-bit hash of its elementary stream data (FNV-1a). It is no protection against prepared collisions. */
  readonly print: number;
  /** The start of its elementary stream data, at most {@link HEAD_BYTES}. A copy. */
  readonly head: Uint8Array;
}

/** Enough for parameter sets, messages and the start of the picture. */
const HEAD_BYTES = 2048;
/** Packets kept of the unit that is arriving. */
const HEAD_PACKETS = 16;
const EMPTY_PRINT = 0x811c9dc5;
/** The bytes of a PES header before its optional fields; the last of them is the size of these (ISO 13818-1 2.4.3.6). */
const PES_HEAD_BYTES = 9;

/** Reads the units of the leading stream of a transport stream, which may begin anywhere and arrive in any chunks. */
export class UnitScanner {
  readonly #aligner = new PacketAligner();
  readonly #tables = new TableReader();
  #streams: readonly TsStream[] = [];
  #leading: TsStream | undefined;
  #head = new Uint8Array(HEAD_PACKETS * TS_PACKET_BYTES);
  #headBytes = 0;
  #unitBytes = 0;
  #print = EMPTY_PRINT;
  /** Bytes of all packets so far except null packets. */
  mediaBytes = 0;

  /** The streams of the programme; empty until its tables have arrived. */
  get streams(): readonly TsStream[] {
    return this.#streams;
  }

  /** Takes the next bytes; returns the units that became complete. */
  push(bytes: Uint8Array): ScannedUnit[] {
    const packets = this.#aligner.push(bytes);
    const units: ScannedUnit[] = [];
    for (let at = 0; at < packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === NULL_PID) continue;
      this.mediaBytes += TS_PACKET_BYTES;
      if (this.#tables.wants(pid) && this.#tables.push(packets, at)) this.#useTables();
      if (pid !== this.#leading?.pid) continue;
      if (isUnitStartAt(packets, at)) this.#finish(units);
      const packet = packets.subarray(at, at + TS_PACKET_BYTES);
      const body = payloadStartAt(packet, 0);
      // The header has the times, which differ when the same picture is sent again.
      const head = isUnitStartAt(packet, 0) ? PES_HEAD_BYTES + (packet[body + PES_HEAD_BYTES - 1] ?? 0) : 0;
      this.#add(packet, body + head);
    }
    return units;
  }

  #useTables(): void {
    const tables = this.#tables.tables(false);
    if (tables === undefined) return;
    this.#streams = streamsOf(tables.pmt);
    const leading = leadingStream(this.#streams);
    if (leading?.pid !== this.#leading?.pid) this.#headBytes = 0;
    this.#leading = leading;
  }

  #add(packet: Uint8Array, body: number): void {
    this.#unitBytes += TS_PACKET_BYTES;
    let print = this.#print;
    for (let i = body; i < packet.length; i++) print = Math.imul(print ^ packet[i]!, 0x01000193);
    this.#print = print;
    if (this.#headBytes === this.#head.length) return;
    this.#head.set(packet, this.#headBytes);
    this.#headBytes += TS_PACKET_BYTES;
  }

  #finish(units: ScannedUnit[]): void {
    const head = this.#head.subarray(0, this.#headBytes);
    // Undefined for packets before the first start of a unit.
    const unit = head.length === 0 ? undefined : nextUnit(head, 0, this.#leading!);
    if (unit?.at === 0) {
      const { bytes } = unitHead(head, 0, this.#leading!.pid, HEAD_BYTES);
      const isKey = unit.isKey === true;
      units.push({ dts: unit.dts, isKey, bytes: this.#unitBytes, print: this.#print >>> 0, head: bytes });
    }
    this.#headBytes = 0;
    this.#unitBytes = 0;
    this.#print = EMPTY_PRINT;
  }
}
