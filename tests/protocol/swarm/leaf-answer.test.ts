import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, equalBytes } from "../../../src/base/bytes.ts";
import { Merkle } from "../../../src/base/merkle.ts";
import { LayerTree } from "../../../src/protocol/swarm/layer-tree.ts";
import { leafAnswer, leafPiece } from "../../../src/protocol/swarm/leaf-answer.ts";
import { decodeHashMessage, encodeHashRange, type HashRange } from "../../../src/wire/peer/hash-message.ts";
import { MESSAGE } from "../../../src/wire/peer/peer-message.ts";
import { parseV2TransportFile } from "../../../src/wire/torrent/v2-metainfo.ts";
import { sha1, sha256 } from "../../wire/make-torrent.ts";
import { makeV2Torrent } from "../../wire/make-v2-torrent.ts";
import { type Content, type ScriptedPeer, ScriptedSwarm } from "./scripted.ts";

const LEAF = 16_384;
/** Five pieces of four leaves each, and a last piece that is slightly longer than one leaf. */
const [LEVEL, PIECE, PIECES] = [2, 4 * LEAF, 6];
const FILM = Uint8Array.from({ length: 21 * LEAF + 99 }, (_, i) => Math.imul(i, 0x9e3779b1) >>> 11);
const MADE = makeV2Torrent({ name: "film.mkv", files: { "film.mkv": FILM }, pieceLength: PIECE });
const FILE = parseV2TransportFile(MADE.bytes, sha1, sha256);
const { root } = FILE.info.layers![0]!;
const merkle = new Merkle(sha256);
const tree = new LayerTree(FILE.info.pieceHashes, LEVEL, merkle);
const bytesOf = (piece: number) => FILM.subarray(piece * PIECE, (piece + 1) * PIECE);

/** All levels of the file's tree according to BEP 52: 22 leaves, padded with zeros to 32. */
const ROWS = (() => {
  let row: Uint8Array[] = Array.from({ length: 32 }, (_, i) =>
    i * LEAF < FILM.length ? sha256(FILM.subarray(i * LEAF, (i + 1) * LEAF)) : new Uint8Array(32),
  );
  const rows = [row];
  while (row.length > 1) {
    row = row.flatMap((left, i) => (i % 2 === 0 ? [sha256(concatBytes([left, row[i + 1]!]))] : []));
    rows.push(row);
  }
  return rows;
})();

test("leafAnswer: returns the leaves of each piece, for ranges of each length, with as many proof layers as requested", () => {
  assert.deepEqual(ROWS.at(-1), [root]);
  for (let piece = 0; piece < PIECES; piece++)
    for (const length of [1, 2, 4])
      for (let index = 4 * piece; index < 4 * piece + 4; index += length)
        for (let proofLayers = 0; proofLayers < 5; proofLayers++) {
          const range = { root, baseLayer: 0, index, length, proofLayers };
          const expected = ROWS[0]!.slice(index, index + length);
          for (let above = Math.log2(length); above <= proofLayers; above++)
            expected.push(ROWS[above]![(index >> above) ^ 1]!);
          assert.equal(leafPiece(range, LEVEL, tree), piece);
          const answer = leafAnswer(range, LEVEL, { tree, bytes: bytesOf(piece), merkle });
          assert.ok(equalBytes(answer, concatBytes(expected)), `${length} at ${index}, ${proofLayers}`);
        }
});

const GOOD: HashRange = { root, baseLayer: 0, index: 8, length: 4, proofLayers: 4 };
for (const [what, change] of [
  ["the piece layer", { baseLayer: 2, index: 2, length: 1, proofLayers: 2 }],
  ["a layer between leaves and pieces", { baseLayer: 1, length: 2 }],
  ["an empty range", { length: 0 }],
  ["a length that is not a power of two", { length: 3, index: 9 }],
  ["an index that is not a multiple of the length", { index: 10 }],
  ["the leaves of two pieces", { length: 8 }],
  ["a range far longer than a piece", { index: 0, length: 0xffff_ffff }],
  ["a range after the last piece", { index: 24 }],
  ["a range far after the last piece", { index: 0xffff_fffc }],
  ["the root as proof of itself", { proofLayers: 5 }],
  ["a proof that ends far above the root", { proofLayers: 0xffff_ffff }],
] as const)
  test(`leafPiece: finds no piece for ${what}`, () => {
    assert.equal(leafPiece(GOOD, LEVEL, tree), 2);
    assert.equal(leafPiece({ ...GOOD, ...change }, LEVEL, tree), undefined);
  });

test("leafPiece: refuses pieces with more leaves than the limit", () => {
  const large = new LayerTree(FILE.info.pieceHashes, 10, merkle);
  assert.equal(leafPiece(GOOD, 10, large), undefined);
  assert.equal(leafPiece(GOOD, 9, new LayerTree(FILE.info.pieceHashes, 9, merkle)), 0);
});

/** A swarm that has the first four pieces. */
function someSwarm() {
  const content: Content = { bytes: FILM, layout: FILE.info };
  const info = { layout: FILE.info, infoBytes: FILE.infoBytes };
  return new ScriptedSwarm(content, { info, held: [0, 1, 2, 3] });
}

const ask = (peer: ScriptedPeer, range: HashRange) =>
  peer.send((writer) => writer.hash(MESSAGE.hashRequest, encodeHashRange(range)));
const hashesSentTo = (peer: ScriptedPeer) =>
  peer.hashes.splice(0).map(({ id, payload }) => decodeHashMessage(id, payload));
const readsOf = (it: ScriptedSwarm) => it.outputs.filter((output) => output.kind === "read");

/** Answers the last read as the store does: without bytes if `isLost` (the store no longer has the piece). */
function answerRead(it: ScriptedSwarm, isLost = false): void {
  const { kind: _, length: __, ...read } = readsOf(it).at(-1)!;
  it.input({ ...read, kind: "block", bytes: isLost ? undefined : bytesOf(read.piece).slice() });
}

test("Swarm: sends the leaves of held pieces, also to choked peers (BEP 52)", () => {
  const it = someSwarm();
  const peer = it.peer();
  ask(peer, GOOD);
  ask(peer, { ...GOOD, index: 4 });
  assert.deepEqual(readsOf(it), [
    { kind: "read", connection: peer.connection, piece: 2, begin: 0, length: PIECE, isForHashes: true },
  ]);
  assert.deepEqual(hashesSentTo(peer), []);
  answerRead(it);
  assert.equal(readsOf(it).length, 2, "one after the other");
  answerRead(it);
  const sent = hashesSentTo(peer);
  assert.deepEqual(
    sent.map(({ kind, range }) => [kind, range.index]),
    [
      ["hashes", 8],
      ["hashes", 4],
    ],
  );
  const [first] = sent;
  const expected = leafAnswer(GOOD, LEVEL, { tree, bytes: bytesOf(2), merkle });
  assert.ok(first?.kind === "hashes" && equalBytes(first.hashes, expected));
});

test("Swarm: rejects requests for leaves of pieces that it never had or has lost", () => {
  const it = someSwarm();
  const peer = it.peer();
  ask(peer, { ...GOOD, index: 16 });
  assert.equal(hashesSentTo(peer)[0]?.kind, "reject");
  assert.equal(readsOf(it).length, 0);
  ask(peer, GOOD);
  answerRead(it, true);
  assert.equal(hashesSentTo(peer)[0]?.kind, "reject");
  ask(peer, GOOD);
  answerRead(it);
  assert.equal(hashesSentTo(peer)[0]?.kind, "hashes");
});

test("Swarm: does not confuse a block read for a peer with a piece read for its leaves", () => {
  const it = someSwarm();
  const peer = it.peer();
  ask(peer, GOOD);
  it.input({ kind: "block", connection: peer.connection, piece: 2, begin: 0, bytes: bytesOf(1).slice() });
  assert.deepEqual(hashesSentTo(peer), []);
  answerRead(it);
  answerRead(it);
  assert.equal(hashesSentTo(peer).length, 1);
  assert.equal(peer.blocks.length, 0);
  ask(peer, GOOD);
  it.input({ kind: "closed", connection: peer.connection, reason: "gone" });
  answerRead(it);
});

test("Swarm: reads 16 MiB of pieces for leaves in a burst, then 8 MiB/s, for all peers together", () => {
  const it = someSwarm();
  const peers = Array.from({ length: 8 }, () => it.peer());
  let answered = 0;
  for (let ms = 0; ms < 4_000; ms += 5) {
    for (const peer of peers) {
      ask(peer, { ...GOOD, length: 1, proofLayers: 0 });
      hashesSentTo(peer);
    }
    for (const { kind: _, length: __, ...read } of readsOf(it).slice(answered)) {
      it.input({ ...read, kind: "block", bytes: bytesOf(read.piece).slice() });
      answered++;
    }
    it.pass(5);
  }
  const bytes = readsOf(it).length * PIECE;
  assert.ok(bytes > 0.9 * (16 + 32) * 2 ** 20 && bytes < 1.1 * (16 + 32) * 2 ** 20, `${bytes} in 4 s`);
});
