import { equalBytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { PAT_PID, type PatProgramme, type Pmt, parsePat, parsePmt } from "./psi.ts";
import { SectionReader } from "./section-reader.ts";
import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";

/** The selected programme of a stream. */
export interface TsTables {
  readonly pmtPid: number;
  readonly pmt: Pmt;
  /** The whole PMT section with all its descriptors. */
  readonly pmtSection: Uint8Array;
}

/** Limit of programmes in a multiplex. */
const MAX_PROGRAMMES = 64;

/**
 * Reads PAT and PMTs from packets. Selects the first programme in the PAT with video, else the first with any stream. Ignores damaged
 * sections, because tables are repeated.
 */
export class TableReader {
  readonly #pat = new SectionReader();
  readonly #pmts = new Map<number, SectionReader>();
  readonly #found = new Map<number, TsTables>();
  #programmes: PatProgramme[] = [];

  /** Returns true if packets of this PID must be passed to {@link push}. */
  wants(pid: number): boolean {
    return pid === PAT_PID || this.#pmts.has(pid);
  }

  /** Processes the packet at offset `at`. Returns true if a table is new or has changed. */
  push(packets: Uint8Array, at: number): boolean {
    const pid = pidAt(packets, at);
    const reader = pid === PAT_PID ? this.#pat : this.#pmts.get(pid);
    const payload = packets.subarray(payloadStartAt(packets, at), at + TS_PACKET_BYTES);
    if (!reader || payload.length === 0) return false;
    let isNew = false;
    for (const section of reader.push(payload, isUnitStartAt(packets, at), packets[at + 3]! & 15)) {
      if (this.#readSection(pid, section)) isNew = true;
    }
    return isNew;
  }

  /** Number of programmes in the PAT. */
  get programmes(): number {
    return this.#programmes.length;
  }

  /** Returns the selected programme once its tables are known. With `isFinal`, does not wait for missing PMTs. */
  tables(isFinal: boolean): TsTables | undefined {
    const known = this.#programmes.map(({ pmtPid }) => this.#found.get(pmtPid));
    for (const tables of known) {
      if (tables?.pmt.streams.some(hasVideo)) return tables;
      if (!tables && !isFinal) return undefined;
    }
    return known.find((tables) => tables && tables.pmt.streams.length > 0);
  }

  #readSection(pid: number, section: Uint8Array): boolean {
    try {
      if (pid === PAT_PID) return this.#readPat(section);
      if (section[0] !== 2) return false; // Other tables can share the PID.
      const before = this.#found.get(pid);
      if (before && equalBytes(before.pmtSection, section)) return false;
      const pmt = parsePmt(section);
      // Several programmes can share a PMT PID; the first one in the PAT is used.
      if (this.#programmes.find(({ pmtPid }) => pmtPid === pid)?.number !== pmt.programme) return false;
      this.#found.set(pid, { pmtPid: pid, pmt, pmtSection: section });
      return true;
    } catch (error) {
      if (error instanceof DecodeError) return false;
      throw error;
    }
  }

  #readPat(section: Uint8Array): boolean {
    const programmes = parsePat(section).slice(0, MAX_PROGRAMMES);
    const text = JSON.stringify(programmes);
    if (programmes.length === 0 || text === JSON.stringify(this.#programmes)) return false;
    this.#programmes = programmes;
    for (const pid of [...this.#pmts.keys()]) {
      if (programmes.some(({ pmtPid }) => pmtPid === pid)) continue;
      this.#pmts.delete(pid);
      this.#found.delete(pid);
    }
    for (const { pmtPid } of programmes)
      if (!this.#pmts.has(pmtPid)) this.#pmts.set(pmtPid, new SectionReader());
    return true;
  }
}

function hasVideo(stream: { readonly streamType: number }): boolean {
  return [1, 2, 0x10, 0x1b, 0x24, 0x33, 0xea].includes(stream.streamType);
}
