import assert from "node:assert/strict";
import { test } from "node:test";
import { OrderedPieces } from "../../src/live/live-driver.ts";
import { PieceMaker, someStream } from "./driver-parts.ts";

/** Records the calls of a sink as text. */
function bench() {
  const calls: string[] = [];
  const ordered = new OrderedPieces({
    piece: ({ epoch, seq }) => void calls.push(`${epoch}:${seq}`),
    skip: (seq) => void calls.push(`skip ${seq}`),
    restarted: () => void calls.push("restarted"),
  });
  const { value, bytes } = new PieceMaker(someStream()).make(new Uint8Array(188)).header;
  const piece = (seq: number, epoch = 1) => ordered.piece({ value: { ...value, seq, epoch }, bytes }, []);
  return { calls, piece, skip: (seq: number) => ordered.skip(seq) };
}

test("OrderedPieces: each number once, in order, with a call for missing ones", () => {
  const { calls, piece, skip } = bench();
  skip(8);
  for (const seq of [10, 11, 11, 10]) piece(seq);
  skip(12);
  skip(11);
  piece(12);
  piece(13);
  assert.deepEqual(calls, ["1:10", "1:11", "skip 12", "1:13"]);
});

test("OrderedPieces: one call for any count of skipped numbers", () => {
  const { calls, piece } = bench();
  piece(10);
  piece(1_000_000);
  assert.deepEqual(calls, ["1:10", "skip 999999", "1:1000000"]);
});

test("OrderedPieces: a restart of the source may begin at any number, and is reported", () => {
  const { calls, piece, skip } = bench();
  piece(10);
  piece(3, 2);
  skip(4);
  piece(5, 2);
  assert.deepEqual(calls, ["1:10", "restarted", "2:3", "skip 4", "2:5"]);
});
