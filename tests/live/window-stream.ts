import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtime } from "#runtime";
import type { Infohash } from "../../src/base/ids.ts";
import { cutPieces } from "../../src/live/broadcast/piece-cutter.ts";
import { openLiveInput } from "../../src/live/input/source.ts";
import { LiveSource } from "../../src/live/window/live-source.ts";
import { LiveWindow, type LiveWindowOptions } from "../../src/live/window/live-window.ts";
import type { KeptSegment } from "../../src/live/window/live-window-segment.ts";
import type { LivePiece } from "../../src/media/live-piece.ts";
import type { LiveCursor } from "../../src/transfer/segment-source.ts";
import { cutPiece } from "../../src/wire/live/chunks.ts";
import type { PieceHeader } from "../../src/wire/live/header.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { keepingLog } from "../engine/parts.ts";
import { FakeWorld } from "./source-parts.ts";

/** A piece and its header. */
export interface StreamPiece {
  readonly header: PieceHeader;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export const PIECE_MS = 125;
export const SEGMENT_MS = 2000;
export const INFOHASH = "c".repeat(40) as Infohash;
const SECONDS = 40;

let made: Promise<readonly StreamPiece[]> | undefined;

/** The first 40 s of the test pattern, cut as by a source. The first piece begins the first segment. */
export function patternStream(): Promise<readonly StreamPiece[]> {
  made ??= makePattern();
  return made;
}

async function makePattern(): Promise<readonly StreamPiece[]> {
  const world = new FakeWorld();
  const options = { pieceMs: PIECE_MS, maxPieceBytes: 256 * 1024, segmentMs: SEGMENT_MS };
  const stream = cutPieces(openLiveInput({ kind: "test-pattern" }, world.parts()), options, world.parts());
  const pieces: LivePiece[] = [];
  const reading = (async () => {
    for (let piece = await stream.next(); piece; piece = await stream.next()) pieces.push(piece);
  })();
  const end = world.clock.now() + 1000 * SECONDS;
  while (world.clock.now() < end) await world.clock.advance(25);
  stream.close();
  await world.clock.advance(2000);
  await reading;
  const first = pieces.findIndex(({ isSegmentStart }) => isSegmentStart);
  return pieces.slice(first).map((piece, index) => ({ bytes: piece.bytes, header: headerOf(piece, index) }));
}

/** The header of piece `index`. */
export function headerOf(piece: LivePiece, index: number): PieceHeader {
  const { bytes, ...changed } = piece;
  return {
    ...changed,
    epoch: 1_700_000_000,
    seq: 1000 + index,
    isEnd: false,
    pieceBytes: bytes.length,
    previousHash: new Uint8Array(20),
    chunkHashes: new Uint8Array(320),
  };
}

/** The same pieces with changed headers. */
export function changed(
  pieces: readonly StreamPiece[],
  change: (header: PieceHeader) => Partial<PieceHeader>,
): StreamPiece[] {
  return pieces.map(({ header, bytes }) => ({ header: { ...header, ...change(header) }, bytes }));
}

/** The same pieces, shifted by `round` times their duration. */
export function laterRound(pieces: readonly StreamPiece[], round: number): StreamPiece[] {
  const first = pieces[0]!.header;
  const last = pieces.at(-1)!.header;
  return changed(pieces, ({ seq, timestampMs, segment }) => ({
    seq: seq + round * pieces.length,
    timestampMs: timestampMs + round * (last.timestampMs - first.timestampMs + first.spanMs),
    segment: segment + round * (last.segment - first.segment + 1),
  }));
}

/** A window and its source, with a fake clock. */
export function someWindow(changes: Partial<LiveWindowOptions> = {}) {
  const clock = new FakeClock();
  const log = keepingLog();
  const window = new LiveWindow({
    files: runtime.files,
    clock,
    folder: undefined,
    free: Promise.resolve(),
    limitMs: 1_800_000,
    limitBytes: () => 1e9,
    segmentMs: SEGMENT_MS,
    pieceMs: PIECE_MS,
    log,
    ...changes,
  });
  return { window, clock, log, source: new LiveSource({ window, infohash: INFOHASH, clock }) };
}

/** Passes pieces to a window, as the swarm does. */
export function give(window: LiveWindow, pieces: Iterable<StreamPiece>): void {
  for (const { header, bytes } of pieces) window.piece(header, cutPiece(bytes, 16));
}

/** Waits until all pending writes are complete. */
export async function written(window: LiveWindow): Promise<void> {
  const isOnItsWay = ({ storage, isGone }: KeptSegment) =>
    !isGone && (storage === "waiting" || storage === "writing");
  while (window.segments.some(isOnItsWay)) await settled();
}

/** Reads a cursor until it has to wait. */
export async function drained(cursor: LiveCursor): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (;;) {
    const stop = new AbortController();
    const next = cursor.next(stop.signal);
    const chunk = await Promise.race([next, settled().then(() => "quiet" as const)]);
    if (chunk === undefined) return chunks;
    if (chunk === "quiet") {
      stop.abort();
      await next.catch(() => {}); // It was given up.
      return chunks;
    }
    chunks.push(chunk);
  }
}

/** Reads at least this many bytes from a cursor. */
export async function taken(cursor: LiveCursor, bytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let got = 0; got < bytes; got += chunks.at(-1)!.length) {
    const chunk = await cursor.next(new AbortController().signal);
    if (!chunk) break;
    chunks.push(chunk);
  }
  return chunks;
}

/** Runs `work` with a temporary folder. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "sluice-window-"));
  try {
    return await work(join(folder, "live"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
