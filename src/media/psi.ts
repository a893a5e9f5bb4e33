import { concatBytes, latin1Bytes, latin1Text, readU16, readU32, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { TS_PACKET_BYTES, writeTsHeader } from "./ts-packet.ts";

/** PID of the programme association table (PAT). */
export const PAT_PID = 0;

/** A programme of the PAT (ISO 13818-1 2.4.4.3). */
export interface PatProgramme {
  readonly number: number;
  readonly pmtPid: number;
}

/** An elementary stream of a programme map table (PMT). */
export interface PmtStream {
  readonly streamType: number;
  readonly pid: number;
  /** Four characters of a registration descriptor, such as `AC-3` (ISO 13818-1 2.6.8). */
  readonly registration?: string;
  /** ISO 639-2 of a language descriptor (2.6.18). */
  readonly language?: string;
  /** Tags of all its descriptors, by which DVB identifies codecs of private data (ETSI EN 300 468). */
  readonly tags?: readonly number[];
  /** Pages of a teletext descriptor (ETSI EN 300 468 6.2.43). */
  readonly pages?: readonly DescribedPage[];
  /** Languages of a subtitling descriptor (ETSI EN 300 468 6.2.41). */
  readonly dvbSubtitles?: readonly DescribedSubtitles[];
}

/** A language of a subtitling descriptor. */
interface DescribedSubtitles {
  readonly language: string;
  /** `subtitling_type`: from 0x20 on for people with impaired hearing. */
  readonly type: number;
  readonly composition: number;
  readonly ancillary: number;
}

/** A page of a teletext descriptor. */
interface DescribedPage {
  readonly language: string;
  /** `teletext_type`: 2 for subtitles, 5 for subtitles for people with impaired hearing. */
  readonly type: number;
  /** 1 to 8. */
  readonly magazine: number;
  /** Two hexadecimal digits. */
  readonly page: number;
}

/** A programme map table (ISO 13818-1 2.4.4.8). */
export interface Pmt {
  readonly programme: number;
  readonly version: number;
  readonly pcrPid: number;
  readonly streams: readonly PmtStream[];
}

/** A stream to add from another programme. */
interface AddedStream {
  /** The whole PMT section that describes it. */
  readonly section: Uint8Array;
  readonly pid: number;
  /** Its PID in the merged programme. */
  readonly newPid: number;
  /** ISO 639-2, written if its own descriptors have no language; `und` for none. */
  readonly language: string;
}

/** Limit of a section (ISO 13818-1 2.4.4.9). */
const MAX_SECTION_BYTES = 1024;
const TAG_REGISTRATION = 5;
const TAG_LANGUAGE = 10;
const TAG_TELETEXT = 0x56;
/** A subtitling descriptor names the languages of DVB subtitles (ETSI EN 300 468 6.2.41). */
const TAG_SUBTITLING = 0x59;

/** Parses a PAT section, without the network PID. Throws {@link DecodeError} if it or its checksum is invalid. */
export function parsePat(section: Uint8Array): PatProgramme[] {
  checkSection(section, 0, "PAT");
  const programmes: PatProgramme[] = [];
  for (let at = 8; at + 4 <= section.length - 4; at += 4) {
    const number = readU16(section, at);
    if (number !== 0) programmes.push({ number, pmtPid: readU16(section, at + 2) & 0x1fff });
  }
  return programmes;
}

/** Parses a PMT section. Throws {@link DecodeError} if it or its checksum is invalid. */
export function parsePmt(section: Uint8Array): Pmt {
  checkSection(section, 2, "PMT");
  const end = section.length - 4;
  if (end < 12) throw new DecodeError("PMT", end, "truncated table");
  const streams: PmtStream[] = [];
  let at = 12 + (readU16(section, 10) & 0xfff);
  while (at + 5 <= end) {
    const descriptors = at + 5;
    const next = descriptors + (readU16(section, at + 3) & 0xfff);
    if (next > end) throw new DecodeError("PMT", at, "truncated descriptors");
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
  if (section.length < 12) throw new DecodeError(name, section.length, "truncated section");
  if (section[0] !== tableId) throw new DecodeError(name, 0, `expected table ${tableId}, got ${section[0]}`);
  const length = 3 + (readU16(section, 1) & 0xfff);
  if (length !== section.length)
    throw new DecodeError(name, 1, `section length is ${length}, but it has ${section.length} bytes`);
  if (crc32Mpeg(section, 0, section.length - 4) !== readU32(section, section.length - 4)) {
    throw new DecodeError(name, section.length - 4, "wrong checksum");
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
  const pages: DescribedPage[] = [];
  const dvbSubtitles: DescribedSubtitles[] = [];
  for (let at = start; at + 2 <= end; ) {
    const tag = section[at]!;
    const body = at + 2;
    const next = body + section[at + 1]!;
    if (next > end) break; // A truncated descriptor invalidates the ones after it, not the stream.
    tags.push(tag);
    if (tag === TAG_REGISTRATION && next >= body + 4)
      registration ??= latin1Text(section.subarray(body, body + 4));
    if ((tag === TAG_LANGUAGE || tag === TAG_SUBTITLING) && next >= body + 3)
      language ??= latin1Text(section.subarray(body, body + 3)).toLowerCase();
    if (tag === TAG_SUBTITLING) dvbSubtitles.push(...describedSubtitles(section.subarray(body, next)));
    if (tag === TAG_TELETEXT) pages.push(...describedPages(section.subarray(body, next)));
    at = next;
  }
  return {
    tags,
    ...(pages.length > 0 && { pages }),
    ...(dvbSubtitles.length > 0 && { dvbSubtitles }),
    ...(registration !== undefined && { registration }),
    ...(language !== undefined && { language }),
  };
}

function describedPages(descriptor: Uint8Array): DescribedPage[] {
  const pages: DescribedPage[] = [];
  for (let at = 0; at + 5 <= descriptor.length; at += 5)
    pages.push({
      language: latin1Text(descriptor.subarray(at, at + 3)).toLowerCase(),
      type: descriptor[at + 3]! >> 3,
      magazine: descriptor[at + 3]! & 7 || 8,
      page: descriptor[at + 4]!,
    });
  return pages;
}

function describedSubtitles(descriptor: Uint8Array): DescribedSubtitles[] {
  const subtitles: DescribedSubtitles[] = [];
  for (let at = 0; at + 8 <= descriptor.length; at += 8)
    subtitles.push({
      language: latin1Text(descriptor.subarray(at, at + 3)).toLowerCase(),
      type: descriptor[at + 3]!,
      composition: readU16(descriptor, at + 4),
      ancillary: readU16(descriptor, at + 6),
    });
  return subtitles;
}

/** Builds a PAT section with one programme. */
export function buildPat(programme: PatProgramme): Uint8Array<ArrayBuffer> {
  const section = new Uint8Array(16);
  writeSectionHead(section, 0, 1, 0);
  writeU16(section, 8, programme.number);
  writeU16(section, 10, 0xe000 | programme.pmtPid);
  return withChecksum(section);
}

/** Builds a PMT section with registration and language descriptors. */
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
  return withChecksum(section);
}

/** Returns the PMT with another programme number, and `pidFor` of the PIDs of its streams and its clock. The section must be valid. */
export function renumberPmt(
  section: Uint8Array,
  programme: number,
  pidFor: (pid: number) => number,
): Uint8Array<ArrayBuffer> {
  const changed = Uint8Array.from(section);
  writeU16(changed, 3, programme);
  writeU16(changed, 8, 0xe000 | pidFor(readU16(changed, 8) & 0x1fff));
  for (const entry of entriesOf(changed)) writeU16(entry, 1, 0xe000 | pidFor(pidOf(entry)));
  return withChecksum(changed);
}

/** Returns the PMT with the streams of `pids` first, in that order; the other streams follow in their order. */
export function reorderPmt(section: Uint8Array, pids: readonly number[]): Uint8Array<ArrayBuffer> {
  const rank = (entry: Uint8Array) =>
    pids.includes(pidOf(entry)) ? pids.indexOf(pidOf(entry)) : pids.length;
  const entries = entriesOf(section).sort((a, b) => rank(a) - rank(b));
  return withEntries(section, entries);
}

/**
 * Returns the PMT `section` without the streams with PIDs in `dropped`, and with `added` at its end; keeps all descriptors. Both sections
 * must be valid. Throws {@link DecodeError} if the result is too large for a section.
 */
export function mergePmt(
  section: Uint8Array,
  dropped: ReadonlySet<number>,
  added: AddedStream | undefined,
): Uint8Array<ArrayBuffer> {
  const entries = entriesOf(section).filter((entry) => !dropped.has(pidOf(entry)));
  const other = added && entriesOf(added.section).find((entry) => pidOf(entry) === added.pid);
  if (other) entries.push(addedEntry(other, added));
  const merged = withEntries(section, entries);
  if (merged.length > MAX_SECTION_BYTES)
    throw new DecodeError("PMT", merged.length, `expected at most ${MAX_SECTION_BYTES} bytes`);
  return merged;
}

function withEntries(section: Uint8Array, entries: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const result = concatBytes([section.subarray(0, headBytes(section)), ...entries, new Uint8Array(4)]);
  writeU16(result, 1, (readU16(section, 1) & 0xf000) | (result.length - 3));
  return withChecksum(result);
}

function addedEntry(entry: Uint8Array, { newPid, language }: AddedStream): Uint8Array {
  const needsNoDescriptor = language === "und" || !/^[a-z]{3}$/.test(language) || hasLanguage(entry);
  const extra = needsNoDescriptor
    ? new Uint8Array(0)
    : Uint8Array.of(TAG_LANGUAGE, 4, ...latin1Bytes(language), 0);
  const own = concatBytes([entry, extra]);
  writeU16(own, 1, 0xe000 | newPid);
  writeU16(own, 3, 0xf000 | (own.length - 5));
  return own;
}

function hasLanguage(entry: Uint8Array): boolean {
  for (let at = 5; at + 2 <= entry.length; at += 2 + entry[at + 1]!)
    if (entry[at] === TAG_LANGUAGE) return true;
  return false;
}

function entriesOf(section: Uint8Array): Uint8Array[] {
  const entries: Uint8Array[] = [];
  for (let at = headBytes(section); at + 5 <= section.length - 4; ) {
    const next = at + 5 + (readU16(section, at + 3) & 0xfff);
    entries.push(section.subarray(at, next));
    at = next;
  }
  return entries;
}

function headBytes(section: Uint8Array): number {
  return 12 + (readU16(section, 10) & 0xfff);
}

function pidOf(entry: Uint8Array): number {
  return readU16(entry, 1) & 0x1fff;
}

function writeSectionHead(section: Uint8Array, tableId: number, id: number, version: number): void {
  section[0] = tableId;
  writeU16(section, 1, 0xb000 | (section.length - 3));
  writeU16(section, 3, id);
  section[5] = 0xc1 | (version << 1);
}

function withChecksum(section: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  writeU32(section, section.length - 4, crc32Mpeg(section, 0, section.length - 4));
  return section;
}

/** Returns a section with another version number, so that receivers read it again (ISO 13818-1 2.4.4.5). */
export function withVersion(section: Uint8Array, version: number): Uint8Array<ArrayBuffer> {
  const changed = Uint8Array.from(section);
  changed[5] = (changed[5]! & 0xc1) | ((version & 31) << 1);
  return withChecksum(changed);
}

/** Splits a section into whole packets on `pid`, with continuity counters from 0. */
export function packetsOfSection(section: Uint8Array, pid: number): Uint8Array<ArrayBuffer> {
  const count = Math.ceil((section.length + 1) / 184);
  const packets = new Uint8Array(count * TS_PACKET_BYTES).fill(0xff);
  let from = 0;
  for (let i = 0; i < count; i++) {
    const at = i * TS_PACKET_BYTES;
    writeTsHeader(packets, at, pid, i === 0, false, i);
    if (i === 0) packets[at + 4] = 0; // pointer_field: the section begins immediately
    const body = i === 0 ? 5 : 4;
    const part = section.subarray(from, from + TS_PACKET_BYTES - body);
    packets.set(part, at + body);
    from += part.length;
  }
  return packets;
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, index) => {
  let value = index << 24;
  for (let bit = 0; bit < 8; bit++) value = value < 0 ? (value << 1) ^ 0x04c11db7 : value << 1;
  return value;
});

/** Returns the checksum of PSI sections (CRC-32/MPEG-2, ISO 13818-1 Annex A) over the bytes `[start, end)`. */
export function crc32Mpeg(bytes: Uint8Array, start: number, end: number): number {
  let value = -1;
  for (let at = start; at < end; at++) value = (value << 8) ^ CRC_TABLE[((value >>> 24) ^ bytes[at]!) & 255]!;
  return value >>> 0;
}
