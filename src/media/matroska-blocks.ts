import { DecodeError } from "../base/errors.ts";
import { eachEbmlChild, ebmlUint, readVint } from "./ebml.ts";

/** Element ids inside clusters (RFC 9559 5.1.3). */
export const CLUSTER = { timestamp: 0xe7, simpleBlock: 0xa3, blockGroup: 0xa0 } as const;

/** The head of a block: its track and time. */
export interface BlockHead {
  readonly track: number;
  /** In ticks, relative to the cluster's timestamp. */
  readonly relativeTime: number;
  /** The key frame flag, valid only in a SimpleBlock. */
  readonly isKey: boolean;
  readonly lacing: 0 | 1 | 2 | 3;
  /** Offset of the frames. */
  readonly start: number;
}

/** A block with its frames. */
export interface MatroskaBlock extends BlockHead {
  /** Total duration of its frames in ticks; undefined if not stated. */
  readonly duration: number | undefined;
  readonly frames: readonly Uint8Array[];
}

/** Reads the head of a block at offset `at` (RFC 9559 10.1); undefined if it is truncated. */
export function readBlockHead(bytes: Uint8Array, at: number): BlockHead | undefined {
  const track = readVint(bytes, at);
  if (!track || track.value === undefined || at + track.length + 3 > bytes.length) return undefined;
  const from = at + track.length;
  const flags = bytes[from + 2]!;
  return {
    track: track.value,
    relativeTime: ((bytes[from]! << 24) | (bytes[from + 1]! << 16)) >> 16,
    isKey: (flags & 0x80) !== 0,
    lacing: ((flags >> 1) & 3) as 0 | 1 | 2 | 3,
    start: from + 3,
  };
}

/** Parses the content `[start, end)` of a SimpleBlock. Throws {@link DecodeError} if it is invalid. */
export function parseSimpleBlock(bytes: Uint8Array, start: number, end: number): MatroskaBlock {
  const head = readBlockHead(bytes, start);
  if (!head || head.start > end) throw new DecodeError("Matroska block", start, "truncated head");
  return { ...head, duration: undefined, frames: splitFrames(bytes, head, end) };
}

/** Parses the content of a BlockGroup; a block without ReferenceBlock is a key frame. Throws {@link DecodeError} if it is invalid. */
export function parseBlockGroup(bytes: Uint8Array, start: number, end: number): MatroskaBlock | undefined {
  let block: MatroskaBlock | undefined;
  let duration: number | undefined;
  let isKey = true;
  eachEbmlChild(bytes, start, end, (id, from, to) => {
    if (id === 0xa1) block = parseSimpleBlock(bytes, from, to);
    else if (id === 0x9b) duration = ebmlUint(bytes, from, to);
    else if (id === 0xfb) isKey = false;
  });
  return block && { ...block, isKey, duration };
}

/** Splits the frames of a laced block (RFC 9559 10.3). */
function splitFrames(bytes: Uint8Array, head: BlockHead, end: number): Uint8Array[] {
  const { lacing, start } = head;
  if (lacing === 0) return [bytes.subarray(start, end)];
  if (start >= end) throw new DecodeError("Matroska lacing", start, "missing frame count");
  const count = bytes[start]! + 1;
  const { sizes, at } =
    lacing === 1
      ? xiphSizes(bytes, start + 1, end, count)
      : lacing === 3
        ? ebmlSizes(bytes, start + 1, end, count)
        : { sizes: Array<number>(count - 1).fill(Math.floor((end - start - 1) / count)), at: start + 1 };
  const frames: Uint8Array[] = [];
  let from = at;
  for (const size of sizes) {
    if (size < 0 || from + size > end)
      throw new DecodeError("Matroska lacing", from, "frame exceeds its block");
    frames.push(bytes.subarray(from, from + size));
    from += size;
  }
  frames.push(bytes.subarray(from, end));
  return frames;
}

function xiphSizes(bytes: Uint8Array, start: number, end: number, count: number) {
  const sizes: number[] = [];
  let [at, size] = [start, 0];
  while (sizes.length < count - 1) {
    if (at >= end) throw new DecodeError("Matroska lacing", at, "truncated frame sizes");
    const byte = bytes[at++]!;
    size += byte;
    if (byte === 255) continue;
    sizes.push(size);
    size = 0;
  }
  return { sizes, at };
}

function ebmlSizes(bytes: Uint8Array, start: number, end: number, count: number) {
  const sizes: number[] = [];
  let at = start;
  while (sizes.length < count - 1) {
    const vint = readVint(bytes, at);
    if (!vint || vint.value === undefined || at + vint.length > end) {
      throw new DecodeError("Matroska lacing", at, "truncated frame sizes");
    }
    // Sizes after the first are signed differences to the previous size (RFC 9559 10.3.3).
    const last = sizes.at(-1);
    sizes.push(last === undefined ? vint.value : last + vint.value - (2 ** (vint.length * 7 - 1) - 1));
    at += vint.length;
  }
  return { sizes, at };
}
