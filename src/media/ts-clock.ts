import { readU32 } from "../base/bytes.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";

/** Consecutive packets, the first of which has a PCR. */
export interface ClockRun {
  readonly packets: Uint8Array;
  /** PCR in 90 kHz ticks, 33 bits; undefined for packets before the first PCR. */
  readonly clock: number | undefined;
}

/** After this many bytes without a PCR on its PID, the splitter follows another PID. */
const MAX_SILENT_BYTES = 4 * 1024 * 1024;

/** Splits a stream of whole packets at each PCR. If several PIDs have a PCR, it follows the first one. */
export class ClockSplitter {
  #pid: number | undefined;
  #silentBytes = 0;

  /** Number of bytes since the last PCR. */
  get silentBytes(): number {
    return this.#silentBytes;
  }

  /** Returns the runs of `packets`; a first run without PCR continues the last run of the previous call. */
  push(packets: Uint8Array): ClockRun[] {
    const runs: ClockRun[] = [];
    let from = 0;
    let clock: number | undefined;
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const ticks = this.#clockAt(packets, at);
      if (ticks === undefined) {
        this.#silentBytes += TS_PACKET_BYTES;
        continue;
      }
      this.#silentBytes = 0;
      if (at > from) runs.push({ packets: packets.subarray(from, at), clock });
      from = at;
      clock = ticks;
    }
    if (from < packets.length) runs.push({ packets: packets.subarray(from), clock });
    return runs;
  }

  #clockAt(packets: Uint8Array, at: number): number | undefined {
    const reference = clockReferenceAt(packets, at);
    if (reference === undefined) return undefined;
    const pid = pidAt(packets, at);
    if (pid === NULL_PID) return undefined;
    if (this.#pid === undefined || this.#silentBytes > MAX_SILENT_BYTES) this.#pid = pid;
    return this.#pid === pid ? Math.floor(reference / 300) : undefined;
  }
}

/** Reads the PCR of the packet at offset `at`, in 27 MHz ticks (ISO 13818-1 2.4.3.5); undefined if it has none. */
export function clockReferenceAt(packets: Uint8Array, at: number): number | undefined {
  const fieldBytes = (packets[at + 3]! & 0x20) !== 0 ? packets[at + 4]! : 0;
  if (fieldBytes < 7 || fieldBytes > 183 || (packets[at + 5]! & 0x10) === 0) return undefined;
  const base = readU32(packets, at + 6) * 2 + (packets[at + 10]! >> 7);
  const extension = ((packets[at + 10]! & 1) << 8) | packets[at + 11]!;
  return base * 300 + Math.min(extension, 299);
}
