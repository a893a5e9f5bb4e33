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
import type { OwnedMemory } from "./owned-memory.ts";

/** What is read on beyond the expected end, step by step. */
const STEP_BYTES = 64 * 1024;
/** No frame is larger: 8K video at its most wasteful stays below. */
const ELEMENT_LIMIT_BYTES = 64 * 1024 * 1024;
/** Track number, time and flags of a block. */
const BLOCK_HEAD_BYTES = 12;

/** One block as the walk meets it. */
export interface WalkedBlock {
  /** Where it lies in the file. */
  readonly at: number;
  /** In ticks of the segment. */
  readonly time: number;
  readonly head: BlockHead;
  /** The whole block, read only now where it was not yet. */
  body(): Promise<MatroskaBlock | undefined>;
}

/** Where to walk, and how much to read at once. */
export interface Walk {
  /** Where a cluster begins. */
  readonly start: number;
  /** So much is read in one piece before the walk; what lies beyond, in small steps. */
  readonly bulkEnd: number;
  readonly end: number;
}

/**
 * Visits the blocks of clusters in the order of the file, until `visit` answers false. Clusters of unknown size are
 * walked like any other: a cluster is only a mark between its blocks. What is read in one piece becomes part of `memory`.
 */
export async function walkBlocks(
  cache: BlockCache,
  walk: Walk,
  visit: (block: WalkedBlock) => Promise<boolean> | boolean,
  signal?: AbortSignalLike,
  memory?: OwnedMemory,
): Promise<void> {
  let base = walk.start;
  let window: Uint8Array = new Uint8Array(0);
  if (walk.bulkEnd > walk.start) {
    const range = { start: walk.start, end: walk.bulkEnd };
    const bulk = await cache.source.read(range, signal ? { signal } : {});
    window = memory?.own(bulk) ?? bulk;
  }
  /** Makes sure that bytes `from` to `to` of the file are in the window, as far as the walk goes. */
  const need = async (from: number, to: number) => {
    const end = Math.min(to, walk.end);
    if (from >= base && end <= base + window.length) return;
    if (end - from > ELEMENT_LIMIT_BYTES)
      throw new DecodeError("Matroska", from, `an element of ${end - from} bytes`);
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
      const own = isSimple ? readBlockHead(window, start - base) : group;
      const body = async () => {
        if (group) return group;
        await need(start, end);
        return parseSimpleBlock(window, start - base, end - base);
      };
      if (own && !(await visit({ at: start, time: clusterTime + own.relativeTime, head: own, body }))) return;
    }
    at = end;
  }
}
