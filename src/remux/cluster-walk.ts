import type { AbortSignalLike } from "../base/byte-source.ts";
import { DecodeError } from "../base/errors.ts";
import { EBML_HEAD_BYTES, ebmlUint, readEbmlHead } from "../media/ebml.ts";
import {
  type BlockHead,
  CLUSTER,
  type MatroskaBlock,
  parseBlockGroup,
  parseSimpleBlock,
  readBlockHead,
} from "../media/matroska-blocks.ts";
import { MATROSKA } from "../media/matroska-head.ts";
import type { BlockCache } from "./block-cache.ts";
import { ELEMENT_LIMIT_BYTES } from "./matroska-demuxer.ts";

/** Step size of reads. */
const STEP_BYTES = 64 * 1024;
/** Enough for the track number, time and flags of a block. */
const BLOCK_HEAD_BYTES = 12;

/** One block during a walk. */
export interface WalkedBlock {
  /** Byte position of its content in the file. */
  readonly at: number;
  /** Timestamp in ticks (`TimestampScale`). */
  readonly time: number;
  readonly head: BlockHead;
  /** Reads and parses the whole block; undefined if it is invalid. */
  body(): Promise<MatroskaBlock | undefined>;
}

/** The byte range of a walk. */
export interface Walk {
  /** Byte position where a cluster begins. */
  readonly start: number;
  readonly end: number;
}

/**
 * Visits the blocks of all clusters in file order until `visit` returns false. Cluster sizes are ignored, so clusters of unknown
 * size (RFC 9559 5.1.3) need no special case. Rejects with `DecodeError` on an oversized element.
 */
export async function walkBlocks(
  cache: BlockCache,
  walk: Walk,
  visit: (block: WalkedBlock) => Promise<boolean> | boolean,
  signal?: AbortSignalLike,
): Promise<void> {
  let base = walk.start;
  let window: Uint8Array = new Uint8Array(0);
  /** Loads the bytes `[from, to)` of the file into the window, up to the end of the walk. */
  const need = async (from: number, to: number) => {
    const end = Math.min(to, walk.end);
    if (from >= base && end <= base + window.length) return;
    if (end - from > ELEMENT_LIMIT_BYTES)
      throw new DecodeError("Matroska", from, `element of ${end - from} bytes`);
    window = await cache.read(from, Math.min(Math.max(end, from + STEP_BYTES), walk.end), signal);
    base = from;
  };
  let clusterTime = 0;
  let at = walk.start;
  while (at < walk.end) {
    await need(at, at + EBML_HEAD_BYTES);
    const head = readEbmlHead(window, at - base);
    if (!head) return;
    const start = head.start + base;
    if (head.id === MATROSKA.cluster) {
      at = start;
      continue;
    }
    if (head.end === undefined) return;
    const end = head.end + base;
    if (head.id === CLUSTER.timestamp) {
      await need(start, end);
      clusterTime = ebmlUint(window, start - base, end - base);
    } else if (head.id === CLUSTER.simpleBlock || head.id === CLUSTER.blockGroup) {
      if (end > walk.end) return;
      const isSimple = head.id === CLUSTER.simpleBlock;
      await need(start, isSimple ? Math.min(end, start + BLOCK_HEAD_BYTES) : end);
      const group = isSimple ? undefined : parseBlockGroup(window, start - base, end - base);
      const blockHead = isSimple ? readBlockHead(window, start - base) : group;
      const body = async () => {
        if (group) return group;
        await need(start, end);
        return parseSimpleBlock(window, start - base, end - base);
      };
      if (!blockHead) {
        at = end;
        continue;
      }
      if (!(await visit({ at: start, time: clusterTime + blockHead.relativeTime, head: blockHead, body })))
        return;
    }
    at = end;
  }
}
