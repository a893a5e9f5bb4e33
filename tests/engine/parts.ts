import { runtime } from "#runtime";
import type { Log } from "../../src/base/log.ts";
import type { Broadcasts } from "../../src/live/broadcast/broadcast-contract.ts";
import { pieceCheck } from "../../src/protocol/swarm/piece-check.ts";
import { DiskCache, type DiskCacheDependencies } from "../../src/storage/disk-cache.ts";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { PieceMemory } from "../../src/storage/piece-memory.ts";
import { PieceStore } from "../../src/storage/piece-store.ts";
import type { EngineSettings } from "../../src/transfer/contract.ts";
import { parseTransportFile, type TransportFile } from "../../src/wire/torrent/metainfo.ts";
import { NO_REACH } from "../parts/no-reach.ts";
import { seededRandom } from "../seeded-random.ts";
import { makeTorrent, sha1, sha256 } from "../wire/make-torrent.ts";

/** A log that records warnings and errors and drops everything else. */
export function keepingLog(): Log & { readonly warnings: string[] } {
  const warnings: string[] = [];
  const keep = (message: string) => void warnings.push(message);
  const log = { warnings, error: keep, warn: keep, info() {}, debug() {}, named: () => log };
  return log;
}

/** Returns pseudorandom bytes that are equal in each run. */
export function someBytes(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const random = seededRandom(seed);
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < words.length; i++) words[i] = random() * 2 ** 32;
  return new Uint8Array(words.buffer).slice(0, length);
}

/** Returns a transport file with one film, and its bytes. */
export function someContent(
  length: number,
  pieceLength: number,
): { file: TransportFile; content: Uint8Array } {
  const content = someBytes(length);
  const made = makeTorrent({ name: "film.mp4", files: [{ path: "film.mp4", bytes: content }], pieceLength });
  return { file: parseTransportFile(made.bytes, sha1), content };
}

/** Opens the disk cache in `path` with its memory. */
export async function someCache(
  path: string,
  limits: { memory: number; disk: number },
  options: Partial<Pick<DiskCacheDependencies, "log" | "files" | "lock" | "clock" | "isKept">> = {},
) {
  const pool = new PieceBufferPool(limits.memory);
  const memory = new PieceMemory(pool, options.clock ?? runtime.clock);
  const cache = await DiskCache.open({
    files: runtime.files,
    clock: runtime.clock,
    isRight: pieceCheck(sha1, sha256),
    log: keepingLog(),
    path,
    limitBytes: limits.disk,
    lock: async () => () => {},
    memoryChanged: () => memory.changed(),
    isKept: () => false,
    ...options,
  });
  return { pool, memory, cache };
}

/** Opens a store over a cache folder, and records dropped pieces. */
export async function someStore(parts: Awaited<ReturnType<typeof someCache>>, file: TransportFile) {
  const folder = await parts.cache.open(file.infohash, file.info);
  const dropped: number[] = [];
  const store = new PieceStore({
    layout: file.info,
    pool: parts.pool,
    memory: parts.memory,
    disk: folder,
    isRight: pieceCheck(sha1, sha256),
    dropped: (piece) => void dropped.push(piece),
  });
  folder.serve(store);
  return { store, folder, dropped };
}

/** Puts `pieces` of the content into the store, as a swarm does. */
export function putPieces(
  store: PieceStore,
  pool: PieceBufferPool,
  content: Uint8Array,
  pieces: Iterable<number>,
) {
  for (const piece of pieces) {
    const length = store.pieceBytes(piece);
    const buffer = pool.take(length, true)!;
    const at = piece * store.layout.pieceLength;
    buffer.set(content.subarray(at, at + length));
    store.put(piece, buffer);
  }
}

/** Settings for tests: loopback, small limits. */
export function someSettings(dataDir: string, changes: Partial<EngineSettings> = {}): EngineSettings {
  return {
    dataDir,
    p2pHost: "127.0.0.1",
    p2pPort: 0,
    cacheLimitBytes: 64 * 1024 * 1024,
    memoryLimitBytes: 16 * 1024 * 1024,
    uploadLimit: 0,
    downloadLimit: 0,
    maxSessions: 256,
    maxTransfers: 24,
    sessionIdleMs: 60_000,
    transferIdleMs: 60_000,
    peersTimeoutMs: 5_000,
    metadataTimeoutMs: 5_000,
    startTimeoutMs: 5_000,
    maxConnections: 50,
    trackers: [],
    liveWindowMs: 60_000,
    liveLimitBytes: 0,
    liveLagMs: 3_000,
    segmentSeconds: 6,
    compat: "document",
    isLowLatency: false,
    reach: NO_REACH,
    ...changes,
  };
}

/** The broadcasts of an engine that has none. */
export const NO_BROADCASTS: Broadcasts = {
  start: () => Promise.reject(new Error("this engine has no broadcasts")),
  get: () => undefined,
  all: () => [],
  close: async () => {},
};
