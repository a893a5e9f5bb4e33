import { TS_PACKET_BYTES, TS_SYNC } from "./ts-packet.ts";

/** The packet layout of a stream: the first sync byte is at `at`, the next ones every `stride` bytes. */
export interface TsLayout {
  /** 188; 192 with a timestamp before each packet (Blu-ray, AVCHD); 204 with error correction after it (DVB). */
  readonly stride: 188 | 192 | 204;
  readonly at: number;
}

/** The packets found by {@link alignPackets}. */
interface AlignedPackets {
  /** Consecutive packets of 188 bytes; a view of the input if they are consecutive there. */
  readonly packets: Uint8Array;
  /** Offset of each packet's sync byte in the input. */
  readonly starts: Float64Array;
  /** Number of processed input bytes; the rest must be prepended to the next input. */
  readonly used: number;
  /** True if the next input begins at a packet boundary. */
  readonly isSynced: boolean;
  /** Number of bytes that were not part of a packet. */
  readonly skipped: number;
}

/** Number of sync bytes at packet distance that identify packets; fewer can occur by chance. */
const SYNC_RUN = 3;
const STRIDES = [188, 192, 204] as const;

/** Detects the packet layout of `bytes`; undefined if five consecutive packets are not found. */
export function detectLayout(bytes: Uint8Array): TsLayout | undefined {
  let best: TsLayout | undefined;
  for (const stride of STRIDES) {
    const at = findSync(bytes, 0, stride, 5);
    if (at >= 0 && (best === undefined || at < best.at)) best = { stride, at };
  }
  return best;
}

/** Offset at or after `from` of the first of `run` sync bytes at distances of `stride`, or −1. */
function findSync(bytes: Uint8Array, from: number, stride: number, run = SYNC_RUN): number {
  let at = bytes.indexOf(TS_SYNC, from);
  while (at >= 0 && at + (run - 1) * stride < bytes.length) {
    let count = 1;
    while (count < run && bytes[at + count * stride] === TS_SYNC) count++;
    if (count === run) return at;
    at = bytes.indexOf(TS_SYNC, at + 1);
  }
  return -1;
}

/**
 * Extracts the packets from `bytes`. If `isSynced`, the bytes begin at a packet boundary; otherwise, and after a missing sync byte, the
 * next run of three sync bytes is searched for. Unless `isEnd`, the last bytes stay unused if they are too few to decide; with `isEnd`,
 * every whole packet with a sync byte is taken. The result does not depend on the chunking of the input.
 */
export function alignPackets(
  bytes: Uint8Array,
  stride: number,
  isSynced: boolean,
  isEnd: boolean,
): AlignedPackets {
  const runs: { start: number; count: number }[] = [];
  let at = 0;
  let total = 0;
  let skipped = 0;
  let synced = isSynced;
  while (at < bytes.length) {
    if (!synced) {
      const next = nextSync(bytes, at, stride, isEnd);
      skipped += next.at - at;
      at = next.at;
      if (!next.isFound) break;
      synced = true;
    }
    const count = syncedPackets(bytes, at, stride, isEnd);
    if (count > 0) runs.push({ start: at, count });
    total += count;
    at += count * stride;
    const isCut = at + (isEnd ? TS_PACKET_BYTES : stride) > bytes.length;
    if (isCut && (isEnd || at >= bytes.length || bytes[at] === TS_SYNC)) break;
    synced = false;
  }
  return {
    ...gather(bytes, runs, total, stride),
    used: Math.min(at, bytes.length),
    isSynced: synced,
    skipped,
  };
}

/** Number of consecutive whole packets from `at`. */
function syncedPackets(bytes: Uint8Array, at: number, stride: number, isEnd: boolean): number {
  const size = isEnd ? TS_PACKET_BYTES : stride;
  let count = 0;
  for (let next = at; next + size <= bytes.length && bytes[next] === TS_SYNC; next += stride) count++;
  return count;
}

function nextSync(
  bytes: Uint8Array,
  at: number,
  stride: number,
  isEnd: boolean,
): { at: number; isFound: boolean } {
  const found = findSync(bytes, at, stride);
  if (found >= 0) return { at: found, isFound: true };
  const undecidedAt = Math.max(at, bytes.length - SYNC_RUN * stride);
  if (!isEnd) return { at: undecidedAt, isFound: false };
  for (
    let start = bytes.indexOf(TS_SYNC, undecidedAt);
    start >= 0;
    start = bytes.indexOf(TS_SYNC, start + 1)
  ) {
    if (start + TS_PACKET_BYTES > bytes.length) break;
    const second = start + stride;
    if (second >= bytes.length || bytes[second] === TS_SYNC) return { at: start, isFound: true };
  }
  return { at: bytes.length, isFound: false };
}

function gather(
  bytes: Uint8Array,
  runs: readonly { start: number; count: number }[],
  total: number,
  stride: number,
): { packets: Uint8Array; starts: Float64Array } {
  const starts = new Float64Array(total);
  let index = 0;
  for (const run of runs) {
    for (let i = 0; i < run.count; i++) starts[index++] = run.start + i * stride;
  }
  if (runs.length === 1 && stride === TS_PACKET_BYTES) {
    const start = runs[0]!.start;
    return { packets: bytes.subarray(start, start + total * TS_PACKET_BYTES), starts };
  }
  const packets = new Uint8Array(total * TS_PACKET_BYTES);
  let to = 0;
  for (const run of runs) {
    if (stride === TS_PACKET_BYTES) {
      packets.set(bytes.subarray(run.start, run.start + run.count * TS_PACKET_BYTES), to);
      to += run.count * TS_PACKET_BYTES;
      continue;
    }
    for (let i = 0; i < run.count; i++, to += TS_PACKET_BYTES) {
      const from = run.start + i * stride;
      packets.set(bytes.subarray(from, from + TS_PACKET_BYTES), to);
    }
  }
  return { packets, starts };
}
