import { concatBytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { buildPat, PAT_PID, packetsOfSection, parsePat, parsePmt } from "./psi.ts";
import { SectionReader } from "./section-reader.ts";
import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";

/**
 * Takes one programme out of a transport stream with several (ISO 13818-1 2.4.4). Its packets pass unchanged; the PAT is replaced by one
 * that lists this programme only. Nothing passes before the tables of the programme are known.
 */
export class ProgrammeFilter {
  readonly #number: number;
  readonly #pat = new SectionReader();
  #pmt = new SectionReader();
  #pmtPid: number | undefined;
  #pids: ReadonlySet<number> = new Set();
  #counter = 0;
  /** The numbers of all programmes in the last PAT. */
  programmes: readonly number[] = [];

  constructor(number: number) {
    this.#number = number;
  }

  /** Returns the packets of the programme among these whole packets. */
  push(packets: Uint8Array): Uint8Array<ArrayBuffer> {
    const kept: Uint8Array[] = [];
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === PAT_PID) {
        if (this.#readPat(packets, at)) kept.push(this.#writePat());
        continue;
      }
      if (pid === this.#pmtPid) this.#readPmt(packets, at);
      if (this.#pids.size > 0 && (pid === this.#pmtPid || this.#pids.has(pid)))
        kept.push(packets.subarray(at, at + TS_PACKET_BYTES));
    }
    return concatBytes(kept);
  }

  /** Returns true at the end of a table that lists the programme. */
  #readPat(packets: Uint8Array, at: number): boolean {
    let isListed = false;
    for (const section of sectionsAt(this.#pat, packets, at)) {
      const all = unlessDamaged(() => parsePat(section));
      if (!all) continue;
      this.programmes = all.map(({ number }) => number);
      const found = all.find(({ number }) => number === this.#number);
      if (found?.pmtPid !== this.#pmtPid) {
        this.#pmtPid = found?.pmtPid;
        this.#pmt = new SectionReader();
        this.#pids = new Set();
      }
      isListed = found !== undefined;
    }
    return isListed;
  }

  #readPmt(packets: Uint8Array, at: number): void {
    for (const section of sectionsAt(this.#pmt, packets, at)) {
      const pmt = section[0] === 2 ? unlessDamaged(() => parsePmt(section)) : undefined;
      // Several programmes can share a PMT PID.
      if (pmt?.programme === this.#number)
        this.#pids = new Set([pmt.pcrPid, ...pmt.streams.map(({ pid }) => pid)]);
    }
  }

  #writePat(): Uint8Array {
    const section = buildPat({ number: this.#number, pmtPid: this.#pmtPid! });
    const packet = packetsOfSection(section, PAT_PID);
    packet[3] = (packet[3]! & 0xf0) | (this.#counter++ & 15);
    return packet;
  }
}

function sectionsAt(reader: SectionReader, packets: Uint8Array, at: number) {
  const payload = packets.subarray(payloadStartAt(packets, at), at + TS_PACKET_BYTES);
  if (payload.length === 0) return [];
  return reader.push(payload, isUnitStartAt(packets, at), packets[at + 3]! & 15);
}

/** Damaged tables are ignored, because tables are repeated. */
function unlessDamaged<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}
