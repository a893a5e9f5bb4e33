import { DecodeError } from "../base/errors.ts";
import { PAT_PID, packetsOfSection, parsePat } from "./psi.ts";
import { SectionReader } from "./section-reader.ts";
import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "./ts-programme.ts";
import { TableReader } from "./ts-tables.ts";

/** What the tables say of the programme that is played. */
export interface LiveProgramme {
  readonly pmtPid: number;
  readonly clockPid: number;
  readonly leading: TsStream;
  /** PAT and PMT as whole packets, for whoever begins in the middle. The continuity counters have no meaning. */
  readonly packets: Uint8Array;
  /** Tells one set of streams from another. */
  readonly streamsText: string;
}

/** So many packets are waited for the tables of programmes that the PAT lists and the stream leaves out. */
const PATIENCE_PACKETS = 4096;

/** Follows PAT and PMT of a stream as it passes, and keeps them ready to be repeated. */
export class LiveTables {
  readonly #reader = new TableReader();
  readonly #pat = new SectionReader();
  #patSection: Uint8Array | undefined;
  #packets = 0;
  programme: LiveProgramme | undefined;

  /** Looks at the packet at `at`. True where the programme was found, or is another than before. */
  push(packets: Uint8Array, at: number): boolean {
    const pid = pidAt(packets, at);
    if (pid === PAT_PID) this.#keepPat(packets, at);
    this.#packets++;
    const isNew = this.#reader.wants(pid) && this.#reader.push(packets, at);
    const isLate = this.#packets === PATIENCE_PACKETS && !this.programme;
    return (isNew || isLate) && this.#learn();
  }

  #keepPat(packets: Uint8Array, at: number): void {
    const payload = packets.subarray(payloadStartAt(packets, at), at + TS_PACKET_BYTES);
    if (payload.length === 0) return;
    for (const section of this.#pat.push(payload, isUnitStartAt(packets, at), packets[at + 3]! & 15)) {
      try {
        parsePat(section);
        this.#patSection = section;
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error; // A damaged one is passed over: it is repeated.
      }
    }
  }

  #learn(): boolean {
    const tables = this.#reader.tables(this.#packets >= PATIENCE_PACKETS);
    if (!tables || !this.#patSection) return false;
    const streams = streamsOf(tables.pmt);
    const leading = leadingStream(streams);
    if (!leading) return false;
    const pat = packetsOfSection(this.#patSection, PAT_PID);
    const pmt = packetsOfSection(tables.pmtSection, tables.pmtPid);
    const packets = new Uint8Array(pat.length + pmt.length);
    packets.set(pat);
    packets.set(pmt, pat.length);
    const { pmtPid } = tables;
    const streamsText = JSON.stringify([pmtPid, streams]);
    this.programme = { pmtPid, clockPid: tables.pmt.pcrPid, leading, packets, streamsText };
    return true;
  }
}
