import { buildPat, PAT_PID, packetsOfSection, withVersion } from "../media/psi.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { TsTables } from "../media/ts-tables.ts";

/** Writes the PAT and PMT of one programme repeatedly. */
export class TablesWriter {
  readonly #packets: Uint8Array;
  readonly #pmtPackets: number;
  /** Size of one PAT plus one PMT, in bytes. */
  readonly length: number;

  constructor(pmtPid: number, programme: number, pmtSection: Uint8Array, version?: number) {
    const versioned = (section: Uint8Array) =>
      version === undefined ? section : withVersion(section, version);
    const pat = packetsOfSection(versioned(buildPat({ number: programme, pmtPid })), PAT_PID);
    const pmt = packetsOfSection(versioned(pmtSection), pmtPid);
    this.#packets = new Uint8Array(pat.length + pmt.length);
    this.#packets.set(pat);
    this.#packets.set(pmt, pat.length);
    this.#pmtPackets = pmt.length / TS_PACKET_BYTES;
    this.length = this.#packets.length;
  }

  /** Writes both at offset `at`, with the continuity counters of repetition `index`. Returns the offset of their end. */
  write(out: Uint8Array, at: number, index: number): number {
    out.set(this.#packets, at);
    out[at + 3] = 0x10 | (index & 15);
    for (let i = 0; i < this.#pmtPackets; i++) {
      out[at + (i + 1) * TS_PACKET_BYTES + 3] = 0x10 | ((index * this.#pmtPackets + i) & 15);
    }
    return at + this.length;
  }
}

/** Returns the writer for tables read from a stream; `version` replaces their version numbers. */
export function tablesWriter(tables: TsTables, version?: number): TablesWriter {
  return new TablesWriter(tables.pmtPid, tables.pmt.programme, tables.pmtSection, version);
}

/**
 * How many times a segment of `seconds` repeats the tables: at least every half second, and a multiple of 16, so that each segment
 * begins with continuity counter 0.
 */
export function tableCount(seconds: number): number {
  return Math.max(16, Math.ceil(seconds / 0.5 / 16) * 16);
}
