import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { runtime } from "#runtime";
import { concatBytes } from "../../src/base/bytes.ts";
import { WebMatch } from "../../src/live/web-fallback/web-match.ts";
import { PacketStretch } from "../../src/media/packet-stretch.ts";
import { pidAt } from "../../src/media/ts-packet.ts";
import { someBytes } from "../engine/parts.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { H264, lavfi, makeMedia } from "../remux/make-media.ts";
import { type Piece, signedPieces } from "./web-copy-parts.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
const LIMIT_BYTES = 32 * 1024 * 1024;
const SECONDS = 12;
const CLIP = await fixture("clip.mpegts");

function matcher(stretch: PacketStretch, pieces: readonly Piece[]) {
  const match = new WebMatch(stretch, 16, runtime.sha256);
  const first = pieces[0]!.header.value.seq;
  return ({ header }: Piece) => match.find(header.value, (seq) => pieces[seq - first]?.header.value);
}

/** Checks all pieces that were found; returns the numbers of the others. */
function unfound(stretch: PacketStretch, pieces: readonly Piece[]): number[] {
  const find = matcher(stretch, pieces);
  return pieces.flatMap((piece, i) => {
    const found = find(piece);
    if (found.kind !== "found") return [i];
    assert.equal(Buffer.compare(found.bytes, piece.bytes), 0, `bytes of piece ${i}`);
    return [];
  });
}

function stretchOf(bytes: Uint8Array): PacketStretch {
  const stretch = new PacketStretch(LIMIT_BYTES);
  stretch.push(bytes);
  return stretch;
}

async function clip(name: string, options: readonly string[]): Promise<Uint8Array> {
  const film = [...lavfi(SECONDS), ...H264, "-c:a", "aac", ...options];
  return new Uint8Array(await readFile(await makeMedia(name, film)));
}

const isTable = (bytes: Uint8Array, at: number) => [0, 0x1000].includes(pidAt(bytes, at));

/** The same with tables at most every `every` packets, so that the source inserts its own before keyframes. */
function thinned(bytes: Uint8Array, every: number): Uint8Array {
  const kept: Uint8Array[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < bytes.length; at += 188) {
    if (pidAt(bytes, at) === 0 && at - last >= 188 * every) last = at;
    if (!isTable(bytes, at) || at - last <= 188) kept.push(bytes.subarray(at, at + 188));
  }
  return concatBytes(kept);
}

test("WebMatch: finds every piece of a stream made by ffmpeg", async () => {
  const bytes = CLIP;
  assert.deepEqual(unfound(stretchOf(bytes), signedPieces(bytes)), []);
});

ffmpegTest("WebMatch: finds pieces in a stream with null packets", WITH, async () => {
  const bytes = await clip("match-stuffed.ts", ["-muxrate", "4000k"]);
  const pieces = signedPieces(bytes);
  assert.ok(pieces.reduce((sum, piece) => sum + piece.bytes.length, 0) < bytes.length / 2);
  assert.deepEqual(unfound(stretchOf(bytes), pieces), []);
});

test("WebMatch: finds pieces with inserted and renumbered tables, also from the middle", async () => {
  const plain = CLIP;
  const bytes = thinned(plain, 70);
  const pieces = signedPieces(bytes);
  assert.ok(pieces.reduce((sum, piece) => sum + piece.bytes.length, 0) > bytes.length, "tables were put in");
  assert.deepEqual(unfound(stretchOf(bytes), pieces), []);
  // From the fourth table on: earlier pieces cannot be found, all later ones must be.
  const tables = [];
  for (let at = 0; at < bytes.length; at += 188) if (pidAt(bytes, at) === 0) tables.push(at);
  const from = tables[3]!;
  const missing = unfound(stretchOf(bytes.subarray(from)), pieces);
  const gone = pieces.findIndex(
    (_, i) => pieces.slice(0, i + 1).reduce((sum, piece) => sum + piece.bytes.length, 0) > from,
  );
  assert.ok(
    missing.every((i) => i <= gone + 2),
    `${missing} beyond ${gone}`,
  );
});

test("WebMatch: finds a single piece without earlier ones, and reports a missing one as elsewhere", async () => {
  const bytes = CLIP;
  const pieces = signedPieces(bytes);
  const half = stretchOf(bytes.subarray(0, 188 * Math.floor(bytes.length / 376)));
  assert.equal(matcher(half, pieces)(pieces[20]!).kind, "found");
  assert.equal(matcher(half, pieces)(pieces[90]!).kind, "elsewhere");
});

test("WebMatch: reports another stream with the same clock as unlike", async () => {
  const bytes = CLIP;
  const pieces = signedPieces(bytes);
  const other = bytes.slice();
  for (let at = 100; at < other.length; at += 188) other[at]! ^= 1;
  assert.equal(matcher(stretchOf(other), pieces)(pieces[20]!).kind, "unlike");
  assert.equal(matcher(stretchOf(someBytes(188 * 1000)), pieces)(pieces[20]!).kind, "elsewhere");
});

test("PacketStretch: drops the oldest bytes beyond its limit, and keeps the numbering", async () => {
  const bytes = CLIP;
  const stretch = new PacketStretch(300 * 188);
  for (let at = 0; at < bytes.length; at += 188 * 50) stretch.push(bytes.subarray(at, at + 188 * 50));
  assert.equal(stretch.end, bytes.length / 188);
  assert.equal(stretch.end - stretch.start <= 300 * 8, true);
  const last = stretch.packets(stretch.end - 10, stretch.end)!;
  assert.deepEqual(last, bytes.subarray(bytes.length - 1880));
  assert.equal(stretch.packets(stretch.start - 1, stretch.end), undefined);
  assert.ok(stretch.clocks.every(({ at }) => at >= stretch.start));
});
