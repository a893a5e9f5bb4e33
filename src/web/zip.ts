import { concatBytes } from "../base/bytes.ts";
import { crc32Of } from "../base/crc32.ts";
import { encodeUtf8 } from "../base/utf8.ts";

const crc32 = crc32Of(0xedb88320);
/** UTF-8 names (APPNOTE.TXT 4.4.4, bit 11). */
const UTF8_NAMES = 0x800;
const VERSION = 20;
/** 1 January 1980, so that the same files make the same archive. */
const DATE = 0x21;

/** Returns a ZIP archive of these files, by their path, without compression (PKWARE APPNOTE.TXT 6.3). Together they are below 4 GiB. */
export function zipOf(files: ReadonlyMap<string, string>): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const [path, text] of files) {
    const name = encodeUtf8(path);
    const bytes = encodeUtf8(text);
    const common = [
      ...[VERSION, UTF8_NAMES, 0, 0, DATE].map(u16),
      ...[crc32(bytes), bytes.length, bytes.length].map(u32),
      ...[name.length, 0].map(u16),
    ];
    const local = concatBytes([u32(0x04034b50), ...common, name, bytes]);
    directory.push(
      concatBytes([
        u32(0x02014b50),
        u16(VERSION),
        ...common,
        ...[0, 0, 0].map(u16),
        u32(0),
        u32(offset),
        name,
      ]),
    );
    parts.push(local);
    offset += local.length;
  }
  const names = concatBytes(directory);
  const count = files.size;
  return concatBytes([
    ...parts,
    names,
    u32(0x06054b50),
    ...[0, 0, count, count].map(u16),
    ...[names.length, offset].map(u32),
    u16(0),
  ]);
}

function u16(value: number): Uint8Array {
  return Uint8Array.of(value, value >> 8);
}

function u32(value: number): Uint8Array {
  return Uint8Array.of(value, value >> 8, value >> 16, value >> 24);
}
