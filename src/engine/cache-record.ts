import { Bits } from "../base/bits.ts";
import { fromHex, toHex } from "../base/bytes.ts";
import type { CacheLayout } from "./cache-layout.ts";

/** The name of the record in the folder of its content. */
export const RECORD_NAME = "record.json";
/** Two million pieces take 512 KiB as hexadecimal digits; the rest is one short entry a segment. */
export const MAX_RECORD_BYTES = 32 * 1024 * 1024;

/** What a folder said it held when the record was written. A hint: whatever is read is verified. */
export interface CacheRecord {
  readonly pieceLength: number;
  readonly pieceCount: number;
  /** Bytes of the whole content. */
  readonly length: number;
  readonly piecesPerSegment: number;
  /** Wall-clock milliseconds. */
  readonly savedAtMs: number;
  readonly pieces: Bits;
  /** Segment to wall-clock seconds of its last reading. */
  readonly lastRead: ReadonlyMap<number, number>;
}

/** The bytes of a record. */
export function encodeRecord(record: CacheRecord): Uint8Array<ArrayBuffer> {
  const { pieces, lastRead, ...rest } = record;
  const value = { version: 1, ...rest, pieces: toHex(pieces.bytes), lastRead: [...lastRead] };
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Reads a record; undefined where it is none (a crash, another version, somebody else's file). */
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

/** Whether the record is about content of this layout. */
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
    return undefined; // Not JSON: no record of ours.
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
