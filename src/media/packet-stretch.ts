import { LiveTables } from "./live-tables.ts";
import { PAT_PID } from "./psi.ts";
import { clockReferenceAt } from "./ts-clock.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";

/** A packet that carries a clock. */
export interface ClockPlace {
  /** Its number in the stretch. */
  readonly at: number;
  readonly pid: number;
  /** Ticks of 27 MHz. */
  readonly reference: number;
}

const FIRST_BYTES = 256 * 1024;

/**
 * Packets that follow each other, without stuffing, of which the oldest leave when there is no room. Packets are numbered from where the
 * stretch began; those that have left keep their numbers.
 */
export class PacketStretch {
  readonly #limitBytes: number;
  #bytes = new Uint8Array(FIRST_BYTES);
  /** The number of the first packet in `#bytes`, and of the one after the last. */
  #start = 0;
  #end = 0;
  #clocks: ClockPlace[] = [];
  readonly #tables = new LiveTables();

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** The first packet that is here. */
  get start(): number {
    return this.#start;
  }

  /** Where the next packet will be. */
  get end(): number {
    return this.#end;
  }

  /** All packets with a clock of the programme that is played; of any while that is not known. */
  get clocks(): readonly ClockPlace[] {
    const pid = this.#tables.programme?.clockPid;
    return pid === undefined ? this.#clocks : this.#clocks.filter((clock) => clock.pid === pid);
  }

  /** PAT and PMT as packets, with continuity counters that mean nothing; undefined until they have come. */
  get tables(): Uint8Array | undefined {
    return this.#tables.programme?.packets;
  }

  /** Whether packets of this PID are tables. */
  isTable(pid: number): boolean {
    return pid === PAT_PID || pid === this.#tables.programme?.pmtPid;
  }

  /** Adds whole packets. */
  push(packets: Uint8Array): void {
    this.#makeRoom(packets.length);
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === NULL_PID) continue;
      const to = (this.#end - this.#start) * TS_PACKET_BYTES;
      if (to + TS_PACKET_BYTES > this.#bytes.length) break; // More at once than there is room for in all.
      this.#bytes.set(packets.subarray(at, at + TS_PACKET_BYTES), to);
      const reference = clockReferenceAt(packets, at);
      if (reference !== undefined) this.#clocks.push({ at: this.#end, pid, reference });
      this.#tables.push(packets, at);
      this.#end++;
    }
  }

  /** The packets from `from` to before `to` as one view, which the next `push` may change; undefined where not all of them are here. */
  packets(from: number, to: number): Uint8Array | undefined {
    if (from < this.#start || to > this.#end || from > to) return undefined;
    return this.#bytes.subarray((from - this.#start) * TS_PACKET_BYTES, (to - this.#start) * TS_PACKET_BYTES);
  }

  #makeRoom(bytes: number): void {
    const used = (this.#end - this.#start) * TS_PACKET_BYTES;
    if (used + bytes <= this.#bytes.length) return;
    const wanted = Math.min(this.#limitBytes, Math.max(2 * this.#bytes.length, used + bytes));
    const gone = Math.min(used, Math.max(0, used + bytes - wanted));
    const gonePackets = Math.ceil(gone / TS_PACKET_BYTES);
    const kept = this.#bytes.subarray(gonePackets * TS_PACKET_BYTES, used);
    if (wanted > this.#bytes.length) {
      const larger = new Uint8Array(wanted);
      larger.set(kept);
      this.#bytes = larger;
    } else this.#bytes.set(kept);
    this.#start += gonePackets;
    this.#clocks = this.#clocks.filter(({ at }) => at >= this.#start);
  }
}
