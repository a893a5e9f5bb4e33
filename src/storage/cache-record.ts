import { Bits } from "../base/bits.ts";
import { fromHex, toHex } from "../base/bytes.ts";
import type { CacheLayout } from "./cache-layout.ts";

/** The name of the record in the folder of its content. */
export const RECORD_NAME = "record.json";
/** Two million pieces take 512 KiB as hexadecimal digits; each segment adds one short entry. */
export const MAX_RECORD_BYTES = 32 * 1024 * 1024;

/** The content of a folder at the time the record was written. A hint only: every piece that is read is verified. */
export interface CacheRecord {
  readonly pieceLength: number;
  readonly pieceCount: number;
  /** Bytes of the whole content. */
  readonly length: number;
  readonly piecesPerSegment: number;
  /** Wall-clock milliseconds. */
  readonly savedAtMs: number;
  readonly pieces: Bits;
  /** Segment index to the wall-clock seconds of its last read. */
  readonly lastRead: ReadonlyMap<number, number>;
}

/** The bytes of a record. */
export function encodeRecord(record: CacheRecord): Uint8Array<ArrayBuffer> {
  const { pieces, lastRead, ...rest } = record;
  const value = { version: 1, ...rest, pieces: toHex(pieces.bytes), lastRead: [...lastRead] };
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Reads a record. Returns undefined if it is truncated, of another version, or another file. */
export function decodeRecord(bytes: Uint8Array): CacheRecord | undefined {
  const value = parse(bytes);
  if (value?.version !== 1) return undefined;
  const { pieceLength, pieceCount, length, piecesPerSegment, savedAtMs } = value;
  const numbers = { pieceLength, pieceCount, length, piecesPerSegment, savedAtMs };
  if (!Object.values(numbers).every((number) => Number.isSafeInteger(number) && (number as number) >= 0))
    return undefined;
  const counts = numbers as Record<keyof typeof numbers, number>;
  const wire = typeof value.pieces === "string" ? fromHex(value.pieces) : undefined;
  if (wire?.length !== Math.ceil(counts.pieceCount / 8)) return undefined;
  const pieces = new Bits(counts.pieceCount);
  if (!pieces.load(wire)) return undefined;
  return { ...counts, pieces, lastRead: readTimes(value.lastRead) };
}

/** Returns true if the record describes content of this layout. */
export function fitsLayout(record: CacheRecord, layout: CacheLayout): boolean {
  return (
    record.pieceLength === layout.pieceLength &&
    record.pieceCount === layout.pieceCount &&
    record.length === layout.length &&
    record.piecesPerSegment === layout.piecesPerSegment
  );
}

function parse(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // Not JSON, so not a record.
  }
}

function readTimes(value: unknown): ReadonlyMap<number, number> {
  const times = new Map<number, number>();
  if (!Array.isArray(value)) return times;
  for (const entry of value) {
    if (!Array.isArray(entry)) continue;
    const [segment, seconds] = entry as unknown[];
    if (typeof segment === "number" && typeof seconds === "number") times.set(segment, seconds);
  }
  return times;
}
