import { receiveNow } from "./bun-recv.ts";
import type { Runtime } from "./contract.ts";
import { machineRuntime } from "./machine.ts";
import type { TrafficMemory } from "./sockets.ts";

/**
 * Bun lets garbage grow to the size of the live heap before it collects. Background collections at this interval save about 30 MB while peers send at full speed, and about 80 MB
 * of released segments while players are served. A collection from within a read callback increases memory instead.
 */
const COLLECT_DELAY_MS = 8;
/** Bytes read and sent before a collection is useful. */
const COLLECT_AFTER_BYTES = 2 * 1024 * 1024;
/** Of the bytes of bodies that are copied into a reused buffer, this share counts: only what they are copied from may be garbage. */
const REUSED_SHARE = 1 / 32;
/**
 * These collections examine new objects only, and keep for good what was in use by chance. One of all objects takes 20 to 40 ms;
 * without it, 200 readers of a list of 100,000 items add 1.5 million dead objects. It runs at most this often, and after this many
 * bytes: at the 2 MB/s of a live stream, one every two seconds would cost 0.6 % of a core.
 */
const FULL_COLLECT_MS = 2_000;
const FULL_COLLECT_BYTES = 16 * 1024 * 1024;
/**
 * The same interval if garbage of another kind exceeds the bytes above: strangers open thousands of connections a second, which the
 * limits close at once, or a programme guide is read, which leaves 150 MB a second. Some of it is in use at each collection of new
 * objects, so only one of all objects frees it.
 */
const FLOOD_COLLECT_MS = 100;

/** Shorter reads are left to the collector: releasing them costs more than their memory. */
const MIN_RELEASED_BYTES = 16 * 1024;
/** Garbage that an accepted connection leaves behind even if it never sends a byte: measured, 3.9 KiB for the socket of
 * `node:net`, the rest for the layers above it. */
const CONNECTION_BYTES = 8 * 1024;

/** The runtime on Bun. */
export const runtime: Runtime = machineRuntime("bun", process.versions.bun ?? "", trafficMemory());

/** Releases the memory of reads, counts the garbage that traffic leaves, and schedules garbage collections. */
function trafficMemory(): TrafficMemory {
  let bytesSince = 0;
  let bytesSinceFull = 0;
  let discardedSinceFull = 0;
  let isScheduled = false;
  let fullAt = performance.now();
  const collect = () => {
    isScheduled = false;
    const isFlood = discardedSinceFull >= FULL_COLLECT_BYTES;
    const isDue = performance.now() - fullAt >= (isFlood ? FLOOD_COLLECT_MS : FULL_COLLECT_MS);
    const isFull = bytesSinceFull >= FULL_COLLECT_BYTES && isDue;
    Bun.gc(isFull);
    if (!isFull) return;
    bytesSinceFull = discardedSinceFull = 0;
    fullAt = performance.now();
  };
  const count = (bytes: number) => {
    bytesSince += bytes;
    if (isScheduled || bytesSince < COLLECT_AFTER_BYTES) return;
    bytesSinceFull += bytesSince;
    bytesSince = 0;
    isScheduled = true;
    setTimeout(collect, COLLECT_DELAY_MS).unref();
  };
  const discarded = (bytes: number) => {
    discardedSinceFull += bytes;
    count(bytes);
  };
  return {
    read: (bytes) => {
      if (!release(bytes)) count(bytes.length);
    },
    receiveNow,
    sent: (bytes, isReused) => count(isReused ? bytes * REUSED_SHARE : bytes),
    discarded,
    accepted: () => discarded(CONNECTION_BYTES),
  };
}

/** Frees the memory of a read at once, so that the next read reuses it. Views on it become empty. Returns false if it is short or
 * shared. */
function release({ buffer, length }: Uint8Array): boolean {
  if (length < MIN_RELEASED_BYTES || length < buffer.byteLength) return false;
  (buffer as ArrayBuffer).transfer(0);
  return true;
}
