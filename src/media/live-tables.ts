import { DecodeError } from "../base/errors.ts";
import { PAT_PID, packetsOfSection, parsePat } from "./psi.ts";
import { SectionReader } from "./section-reader.ts";
import { isUnitStartAt, payloadStartAt, pidAt, TS_PACKET_BYTES } from "./ts-packet.ts";
import { leadingStream, streamsOf, type TsStream } from "./ts-programme.ts";
import { TableReader } from "./ts-tables.ts";

/** The selected programme of a live stream, from PAT and PMT. */
interface LiveProgramme {
  readonly pmtPid: number;
  readonly clockPid: number;
  readonly leading: TsStream;
  /** PAT and PMT as whole packets, for insertion at a random access point. Their continuity counters must be replaced. */
  readonly packets: Uint8Array;
  /** Identifies the set of streams; changes if a stream changes. */
  readonly streamsText: string;
}

/** How long to wait for the PMT of every programme in the PAT, because some may be missing from the stream. */
const TABLE_WAIT_PACKETS = 4096;

/** Tracks PAT and PMT of a stream, and keeps them as packets for insertion. */
export class LiveTables {
  readonly #reader = new TableReader();
  readonly #pat = new SectionReader();
  #patSection: Uint8Array | undefined;
  #packets = 0;
  programme: LiveProgramme | undefined;

  /** Processes the packet at offset `at`. Returns true if the programme was found or has changed. */
  push(packets: Uint8Array, at: number): boolean {
    const pid = pidAt(packets, at);
    if (pid === PAT_PID) this.#keepPat(packets, at);
    this.#packets++;
    const isNew = this.#reader.wants(pid) && this.#reader.push(packets, at);
    const isTimeout = this.#packets === TABLE_WAIT_PACKETS && !this.programme;
    return (isNew || isTimeout) && this.#updateProgramme();
  }

  #keepPat(packets: Uint8Array, at: number): void {
    const payload = packets.subarray(payloadStartAt(packets, at), at + TS_PACKET_BYTES);
    if (payload.length === 0) return;
    for (const section of this.#pat.push(payload, isUnitStartAt(packets, at), packets[at + 3]! & 15)) {
      try {
        parsePat(section);
        this.#patSection = section;
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error; // Damaged: ignore it, because tables are repeated.
      }
    }
  }

  #updateProgramme(): boolean {
    const tables = this.#reader.tables(this.#packets >= TABLE_WAIT_PACKETS);
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
