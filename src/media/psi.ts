import { latin1Bytes, latin1Text, readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { crc32Mpeg } from "./crc32.ts";
import { TS_PACKET_BYTES, writeTsHeader } from "./ts-packet.ts";

/** The PID of the programme association table. */
export const PAT_PID = 0;

/** One programme of a programme association table. */
export interface PatProgramme {
  readonly number: number;
  readonly pmtPid: number;
}

/** One elementary stream of a programme map table. */
export interface PmtStream {
  readonly streamType: number;
  readonly pid: number;
  /** Four characters of a registration descriptor, such as `AC-3` (ISO 13818-1 2.6.8). */
  readonly registration?: string;
  /** ISO 639-2 of a language descriptor (2.6.18). */
  readonly language?: string;
  /** Tags of all its descriptors: DVB tells codecs of private data by them (ETSI EN 300 468). */
  readonly tags?: readonly number[];
}

/** A programme map table (2.4.4.8). */
export interface Pmt {
  readonly programme: number;
  readonly version: number;
  readonly pcrPid: number;
  readonly streams: readonly PmtStream[];
}

const TAG_REGISTRATION = 5;
const TAG_LANGUAGE = 10;

/** Reads a whole PAT section, checksum included; throws {@link DecodeError}. The network PID is left out. */
export function parsePat(section: Uint8Array): PatProgramme[] {
  checkSection(section, 0, "PAT");
  const programmes: PatProgramme[] = [];
  for (let at = 8; at + 4 <= section.length - 4; at += 4) {
    const number = readU16(section, at);
    if (number !== 0) programmes.push({ number, pmtPid: readU16(section, at + 2) & 0x1fff });
  }
  return programmes;
}

/** Reads a whole PMT section, checksum included; throws {@link DecodeError}. */
export function parsePmt(section: Uint8Array): Pmt {
  checkSection(section, 2, "PMT");
  const end = section.length - 4;
  if (end < 12) throw new DecodeError("PMT", end, "a cut table");
  const streams: PmtStream[] = [];
  let at = 12 + (readU16(section, 10) & 0xfff);
  while (at + 5 <= end) {
    const descriptors = at + 5;
    const next = descriptors + (readU16(section, at + 3) & 0xfff);
    if (next > end) throw new DecodeError("PMT", at, "descriptors run past the end");
    const pid = readU16(section, at + 1) & 0x1fff;
    streams.push({ streamType: section[at]!, pid, ...readDescriptors(section, descriptors, next) });
    at = next;
  }
  return {
    programme: readU16(section, 3),
    version: (section[5]! >> 1) & 31,
    pcrPid: readU16(section, 8) & 0x1fff,
    streams,
  };
}

function checkSection(section: Uint8Array, tableId: number, name: string): void {
  if (section.length < 12) throw new DecodeError(name, section.length, "a cut section");
  if (section[0] !== tableId) throw new DecodeError(name, 0, `expected table ${tableId}, got ${section[0]}`);
  const length = 3 + (readU16(section, 1) & 0xfff);
  if (length !== section.length)
    throw new DecodeError(name, 1, `a section of ${length} bytes in ${section.length}`);
  if (crc32Mpeg(section, 0, section.length - 4) !== readU32(section, section.length - 4)) {
    throw new DecodeError(name, section.length - 4, "a wrong checksum");
  }
}

function readDescriptors(
  section: Uint8Array,
  start: number,
  end: number,
): Omit<PmtStream, "streamType" | "pid"> {
  let registration: string | undefined;
  let language: string | undefined;
  const tags: number[] = [];
  for (let at = start; at + 2 <= end; ) {
    const tag = section[at]!;
    const body = at + 2;
    const next = body + section[at + 1]!;
    if (next > end) break; // A cut descriptor spoils the ones after it, not the stream.
    tags.push(tag);
    if (tag === TAG_REGISTRATION && next >= body + 4)
      registration ??= latin1Text(section.subarray(body, body + 4));
    if (tag === TAG_LANGUAGE && next >= body + 3)
      language ??= latin1Text(section.subarray(body, body + 3)).toLowerCase();
    at = next;
  }
  return {
    tags,
    ...(registration !== undefined && { registration }),
    ...(language !== undefined && { language }),
  };
}

/** A PAT section of one programme. */
export function buildPat(programme: PatProgramme): Uint8Array<ArrayBuffer> {
  const section = new Uint8Array(16);
  writeSectionHead(section, 0, 1, 0);
  writeU16(section, 8, programme.number);
  writeU16(section, 10, 0xe000 | programme.pmtPid);
  return sealed(section);
}

/** A PMT section with registration and language descriptors. */
export function buildPmt(pmt: Pmt): Uint8Array<ArrayBuffer> {
  const streams = pmt.streams.map((stream) => {
    const registration = stream.registration
      ? [TAG_REGISTRATION, 4, ...latin1Bytes(stream.registration)]
      : [];
    const language = stream.language ? [TAG_LANGUAGE, 4, ...latin1Bytes(stream.language), 0] : [];
    return { ...stream, descriptors: [...registration, ...language] };
  });
  const section = new Uint8Array(
    16 + streams.reduce((sum, stream) => sum + 5 + stream.descriptors.length, 0),
  );
  writeSectionHead(section, 2, pmt.programme, pmt.version);
  writeU16(section, 8, 0xe000 | pmt.pcrPid);
  writeU16(section, 10, 0xf000);
  let at = 12;
  for (const { streamType, pid, descriptors } of streams) {
    section[at] = streamType;
    writeU16(section, at + 1, 0xe000 | pid);
    writeU16(section, at + 3, 0xf000 | descriptors.length);
    section.set(descriptors, at + 5);
    at += 5 + descriptors.length;
  }
  return sealed(section);
}

/** The same PMT with the streams of `pids` first, in that order; the others follow as they were. */
export function reorderPmt(section: Uint8Array, pids: readonly number[]): Uint8Array<ArrayBuffer> {
  const end = section.length - 4;
  const head = 12 + (readU16(section, 10) & 0xfff);
  const entries: { pid: number; bytes: Uint8Array }[] = [];
  for (let at = head; at + 5 <= end; ) {
    const next = at + 5 + (readU16(section, at + 3) & 0xfff);
    entries.push({ pid: readU16(section, at + 1) & 0x1fff, bytes: section.subarray(at, next) });
    at = next;
  }
  const rank = ({ pid }: { pid: number }) => (pids.includes(pid) ? pids.indexOf(pid) : pids.length);
  entries.sort((a, b) => rank(a) - rank(b));
  const reordered = section.slice();
  let to = head;
  for (const { bytes } of entries) {
    reordered.set(bytes, to);
    to += bytes.length;
  }
  return sealed(reordered);
}

function writeSectionHead(section: Uint8Array, tableId: number, id: number, version: number): void {
  section[0] = tableId;
  writeU16(section, 1, 0xb000 | (section.length - 3));
  writeU16(section, 3, id);
  section[5] = 0xc1 | (version << 1);
}

function sealed(section: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  writeU32(section, section.length - 4, crc32Mpeg(section, 0, section.length - 4));
  return section;
}

/** A section as whole packets on `pid`, continuity counters from 0. */
export function packetsOfSection(section: Uint8Array, pid: number): Uint8Array<ArrayBuffer> {
  const count = Math.ceil((section.length + 1) / 184);
  const packets = new Uint8Array(count * TS_PACKET_BYTES).fill(0xff);
  let from = 0;
  for (let i = 0; i < count; i++) {
    const at = i * TS_PACKET_BYTES;
    writeTsHeader(packets, at, pid, i === 0, false, i);
    if (i === 0) packets[at + 4] = 0; // pointer_field: the section begins at once
    const body = i === 0 ? 5 : 4;
    const part = section.subarray(from, from + TS_PACKET_BYTES - body);
    packets.set(part, at + body);
    from += part.length;
  }
  return packets;
}
