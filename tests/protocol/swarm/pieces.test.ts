import assert from "node:assert/strict";
import { test } from "node:test";
import { Pieces } from "../../../src/protocol/swarm/pieces.ts";

const NO_BUFFERS = { take: () => undefined, give() {} };
const PIECE = 32_768;
const layout = { pieceLength: PIECE, pieceCount: 2, length: PIECE + 5_000, isPrivate: false };
const first = new Pieces({ ...layout, pieceHashes: new Uint8Array(40) }, [], NO_BUFFERS);
const second = new Pieces(
  { ...layout, pieceHashes: new Uint8Array(64), shortPieces: new Map([[1, 5_000]]) },
  [],
  NO_BUFFERS,
);

test("Pieces.servedLengthOf: only version 2 serves bytes behind the end of a file", () => {
  assert.deepEqual([first.servedLengthOf(0), first.servedLengthOf(1)], [PIECE, 5_000]);
  assert.deepEqual([second.servedLengthOf(0), second.servedLengthOf(1)], [PIECE, PIECE]);
  assert.equal(second.lengthOf(1), 5_000);
});

test("Pieces.padded: adds zeros behind the end of a file, but not for other missing bytes", () => {
  const bytes = new Uint8Array(1_000).fill(7);
  const whole = second.padded(1, 4_000, 16_384, bytes);
  assert.equal(whole.length, 16_384);
  assert.deepEqual(whole.subarray(0, 1_000), bytes);
  assert.ok(whole.subarray(1_000).every((byte) => byte === 0));
  assert.equal(second.padded(1, 16_384, 16_384, new Uint8Array(0)).length, 16_384);
  assert.equal(second.padded(0, 0, 16_384, bytes).length, 1_000, "a store that gave too little");
  assert.equal(first.padded(1, 0, 5_000, new Uint8Array(5_000)).length, 5_000);
});
