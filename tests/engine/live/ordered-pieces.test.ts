import assert from "node:assert/strict";
import { test } from "node:test";
import { OrderedPieces } from "../../../src/engine/live/ordered-pieces.ts";
import { PieceMaker, someStream } from "./driver-parts.ts";

/** What a sink hears, as words. */
function bench() {
  const heard: string[] = [];
  const ordered = new OrderedPieces({
    piece: ({ epoch, seq }) => void heard.push(`${epoch}:${seq}`),
    skip: (seq) => void heard.push(`skip ${seq}`),
    restarted: () => void heard.push("restarted"),
  });
  const { value } = new PieceMaker(someStream()).make(new Uint8Array(188)).header;
  const piece = (seq: number, epoch = 1) => ordered.piece({ ...value, seq, epoch }, []);
  return { heard, piece, skip: (seq: number) => ordered.skip(seq) };
}

test("OrderedPieces: each number once and in order, what is missing with a word", () => {
  const { heard, piece, skip } = bench();
  skip(8);
  for (const seq of [10, 11, 11, 10]) piece(seq);
  skip(12);
  skip(11);
  piece(12);
  piece(13);
  assert.deepEqual(heard, ["1:10", "1:11", "skip 12", "1:13"]);
});

test("OrderedPieces: numbers that are left out are one word, however many", () => {
  const { heard, piece } = bench();
  piece(10);
  piece(1_000_000);
  assert.deepEqual(heard, ["1:10", "skip 999999", "1:1000000"]);
});

test("OrderedPieces: a new life of the source begins anywhere, and is told of", () => {
  const { heard, piece, skip } = bench();
  piece(10);
  piece(3, 2);
  skip(4);
  piece(5, 2);
  assert.deepEqual(heard, ["1:10", "restarted", "2:3", "skip 4", "2:5"]);
});
