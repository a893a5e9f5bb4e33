import { concatBytes, latin1Bytes, readU16, writeU16, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { crc32Mpeg } from "./crc32.ts";

/** A stream that is taken over from another programme. */
export interface TakenStream {
  /** The whole PMT section that describes it. */
  readonly section: Uint8Array;
  readonly pid: number;
  /** The PID it has from now on. */
  readonly newPid: number;
  /** ISO 639-2, said where its own description says none; `und` for none. */
  readonly language: string;
}

/** A section is no longer (ISO 13818-1 2.4.4.9). */
const MAX_SECTION_BYTES = 1024;
const TAG_LANGUAGE = 10;

/**
 * The PMT `section` without the streams of `dropped`, and with another stream at its end; all descriptors stay. Both sections
 * have been parsed before. Throws `DecodeError` where it does not fit.
 */
export function mergePmt(
  section: Uint8Array,
  dropped: ReadonlySet<number>,
  taken: TakenStream | undefined,
): Uint8Array<ArrayBuffer> {
  const entries = entriesOf(section).filter((entry) => !dropped.has(pidOf(entry)));
  const other = taken && entriesOf(taken.section).find((entry) => pidOf(entry) === taken.pid);
  if (other) entries.push(renamed(other, taken));
  const head = section.subarray(0, headBytes(section));
  const merged = concatBytes([head, ...entries, new Uint8Array(4)]);
  if (merged.length > MAX_SECTION_BYTES)
    throw new DecodeError("PMT", merged.length, `expected at most ${MAX_SECTION_BYTES} bytes`);
  writeU16(merged, 1, (readU16(merged, 1) & 0xf000) | (merged.length - 3));
  writeU32(merged, merged.length - 4, crc32Mpeg(merged, 0, merged.length - 4));
  return merged;
}

function renamed(entry: Uint8Array, { newPid, language }: TakenStream): Uint8Array {
  const isSilent = language === "und" || !/^[a-z]{3}$/.test(language) || hasLanguage(entry);
  const extra = isSilent ? new Uint8Array(0) : Uint8Array.of(TAG_LANGUAGE, 4, ...latin1Bytes(language), 0);
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
