import { LiveTables } from "./live-tables.ts";
import { PAT_PID } from "./psi.ts";
import { clockReferenceAt } from "./ts-clock.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";

/** A packet with a PCR. */
interface ClockPlace {
  /** Number of the packet in the stretch. */
  readonly at: number;
  readonly pid: number;
  /** PCR in 27 MHz ticks. */
  readonly reference: number;
}

const FIRST_BYTES = 256 * 1024;

/**
 * A window of consecutive packets, without null packets, that drops the oldest ones at its size limit. Packets are numbered from the
 * start of the stretch; dropping packets does not change the numbers of the others.
 */
export class PacketStretch {
  readonly #limitBytes: number;
  #bytes = new Uint8Array(FIRST_BYTES);
  /** Number of the first packet in `#bytes`, and the number after the last. */
  #start = 0;
  #end = 0;
  #clocks: ClockPlace[] = [];
  readonly #tables = new LiveTables();

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /** Number of the oldest packet. */
  get start(): number {
    return this.#start;
  }

  /** Number of the next packet to be added. */
  get end(): number {
    return this.#end;
  }

  /** The packets with a PCR of the selected programme, or of any programme while it is unknown. */
  get clocks(): readonly ClockPlace[] {
    const pid = this.#tables.programme?.clockPid;
    return pid === undefined ? this.#clocks : this.#clocks.filter((clock) => clock.pid === pid);
  }

  /** PAT and PMT as packets, whose continuity counters must be replaced; undefined until they are known. */
  get tables(): Uint8Array | undefined {
    return this.#tables.programme?.packets;
  }

  /** Returns true if the PID carries the PAT or the PMT. */
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
      if (to + TS_PACKET_BYTES > this.#bytes.length) break; // The input is larger than the window.
      this.#bytes.set(packets.subarray(at, at + TS_PACKET_BYTES), to);
      const reference = clockReferenceAt(packets, at);
      if (reference !== undefined) this.#clocks.push({ at: this.#end, pid, reference });
      this.#tables.push(packets, at);
      this.#end++;
    }
  }

  /** Returns the packets `[from, to)` as a view that the next `push` can change; undefined if one of them is not in the window. */
  packets(from: number, to: number): Uint8Array | undefined {
    if (from < this.#start || to > this.#end || from > to) return undefined;
    return this.#bytes.subarray((from - this.#start) * TS_PACKET_BYTES, (to - this.#start) * TS_PACKET_BYTES);
  }

  #makeRoom(bytes: number): void {
    const used = (this.#end - this.#start) * TS_PACKET_BYTES;
    if (used + bytes <= this.#bytes.length) return;
    const wanted = Math.min(this.#limitBytes, Math.max(2 * this.#bytes.length, used + bytes));
    const droppedBytes = Math.min(used, Math.max(0, used + bytes - wanted));
    const droppedPackets = Math.ceil(droppedBytes / TS_PACKET_BYTES);
    const kept = this.#bytes.subarray(droppedPackets * TS_PACKET_BYTES, used);
    if (wanted > this.#bytes.length) {
      const larger = new Uint8Array(wanted);
      larger.set(kept);
      this.#bytes = larger;
    } else this.#bytes.set(kept);
    this.#start += droppedPackets;
    this.#clocks = this.#clocks.filter(({ at }) => at >= this.#start);
  }
}
