import { PAT_PID, renumberPmt } from "../../media/psi.ts";
import { NULL_PID, pidAt, TS_PACKET_BYTES } from "../../media/ts-packet.ts";
import { streamsOf, type TsStream } from "../../media/ts-programme.ts";
import { TableReader, type TsTables } from "../../media/ts-tables.ts";
import type { TsEntry } from "../ts-join.ts";
import { TablesWriter } from "../ts-tables-writer.ts";

/** A stream of the joined programme. */
interface Slot {
  readonly stream: TsStream;
  /** The PID of the source that used it last. */
  sourcePid: number;
}

/** The first PID that is no table of DVB (ETSI EN 300 468 5.1.3). */
const FIRST_FREE_PID = 0x20;
/** Beyond this, streams that the present source does not have are forgotten. */
const MAX_SLOTS = 256;

/**
 * Gives transport streams that are joined the same PIDs and the same programme number, because most players read the tables once. A
 * stream gets the PID that a stream with the same codec had before, if possible one with the same language. A stream with another codec
 * gets a PID of its own, because a decoder is chosen by PID. The first source is unchanged.
 */
export class StablePids {
  #slots: Slot[] = [];
  #programme: { readonly number: number; readonly pmtPid: number } | undefined;
  /** The tables that the following fields belong to. */
  #tables: TsTables | undefined;
  #version = -1;
  #pids: ReadonlyMap<number, number> = new Map();
  #writer: TablesWriter | undefined;

  /** Reads the PIDs of media that was written before, such as the end of a file. */
  learn(packets: Uint8Array): void {
    const reader = new TableReader();
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES)
      if (reader.wants(pidAt(packets, at))) reader.push(packets, at);
    const tables = reader.tables(true);
    if (tables) this.#assign(tables);
  }

  /** Returns true if players that play AAC would get no sound from a stream: it has sound, but none in a codec that was there before. */
  lacksSoundOf({ tables }: TsEntry): boolean {
    const known = this.#slots.filter(({ stream }) => stream.kind === "audio");
    const sounds = tables ? streamsOf(tables.pmt).filter(({ kind }) => kind === "audio") : [];
    if (known[0]?.stream.codec !== "aac" || sounds.length === 0) return false;
    return !sounds.some((sound) => known.some((slot) => isSameCodec(slot, sound)));
  }

  /** The first sound of the first source, if it has some that the present source does not have. */
  get missingSound(): TsStream | undefined {
    const sound = this.#slots.find(({ stream }) => stream.kind === "audio")?.stream;
    return sound && [...this.#pids.values()].includes(sound.pid) ? undefined : sound;
  }

  /** Changes whole packets in place. `entry` returned them, and nothing after them. */
  apply(entry: TsEntry, packets: Uint8Array): void {
    const { tables, version } = entry;
    if (tables === undefined) return;
    if (tables !== this.#tables || version !== this.#version) {
      this.#pids = this.#assign(tables);
      [this.#tables, this.#version] = [tables, version];
      this.#writer = this.#tablesWriter(tables, version);
    }
    for (let at = 0; at + TS_PACKET_BYTES <= packets.length; at += TS_PACKET_BYTES) {
      const pid = pidAt(packets, at);
      if (pid === PAT_PID) {
        // The entry wrote PAT and PMT one after the other, in as many packets.
        at = this.#writer!.write(packets, at, packets[at + 3]! & 15) - TS_PACKET_BYTES;
        continue;
      }
      const stable = this.#pids.get(pid) ?? pid;
      packets[at + 1] = (packets[at + 1]! & 0xe0) | (stable >> 8);
      packets[at + 2] = stable & 0xff;
    }
  }

  #tablesWriter({ pmtSection }: TsTables, version: number): TablesWriter {
    const { number, pmtPid } = this.#programme!;
    const section = renumberPmt(pmtSection, number, (pid) => this.#pids.get(pid) ?? pid);
    return new TablesWriter(pmtPid, number, section, version);
  }

  /** Returns the PIDs of the joined programme by those of a source. */
  #assign({ pmt, pmtPid }: TsTables): ReadonlyMap<number, number> {
    this.#programme ??= { number: pmt.programme, pmtPid };
    const streams = streamsOf(pmt);
    const { pcrPid } = pmt;
    if (pcrPid !== NULL_PID && !streams.some(({ pid }) => pid === pcrPid))
      streams.push({ pid: pcrPid, kind: "data", codec: "clock", language: "und" });
    const pids = new Map<number, number>();
    const used = new Set<Slot>();
    const use = (slot: Slot, sourcePid: number) => {
      used.add(slot);
      slot.sourcePid = sourcePid;
      pids.set(sourcePid, slot.stream.pid);
    };
    for (const isLike of [isSameStream, isSameLanguage, isSameCodec])
      for (const stream of streams) {
        if (pids.has(stream.pid)) continue;
        const slot = this.#slots.find((known) => !used.has(known) && isLike(known, stream));
        if (slot) use(slot, stream.pid);
      }
    if (this.#slots.length > MAX_SLOTS) this.#slots = [...used];
    for (const stream of streams) {
      if (pids.has(stream.pid)) continue;
      const slot = { stream: { ...stream, pid: this.#freePid(stream.pid) }, sourcePid: stream.pid };
      this.#slots.push(slot);
      use(slot, stream.pid);
    }
    return pids;
  }

  /** Returns `pid`, or the lowest free one if it is used. */
  #freePid(pid: number): number {
    const taken = new Set([this.#programme!.pmtPid, ...this.#slots.map(({ stream }) => stream.pid)]);
    let free = pid;
    for (let next = FIRST_FREE_PID; taken.has(free); next++) free = next;
    return free;
  }
}

function isSameStream(slot: Slot, stream: TsStream): boolean {
  return slot.sourcePid === stream.pid && isSameLanguage(slot, stream);
}

function isSameLanguage(slot: Slot, stream: TsStream): boolean {
  return slot.stream.language === stream.language && isSameCodec(slot, stream);
}

function isSameCodec({ stream: { kind, codec } }: Slot, stream: TsStream): boolean {
  return kind === stream.kind && codec === stream.codec;
}
