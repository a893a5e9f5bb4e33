import assert from "node:assert/strict";
import { test } from "node:test";
import { Bits } from "../../../src/base/bits.ts";
import { instant } from "../../../src/base/time.ts";
import { MAX_REQUEST_QUEUE, MIN_REQUEST_QUEUE } from "../../../src/protocol/swarm/limits.ts";
import { PartialPiece } from "../../../src/protocol/swarm/partial-piece.ts";
import { PeerPieces } from "../../../src/protocol/swarm/peer-pieces.ts";
import { RequestQueue } from "../../../src/protocol/swarm/request-queue.ts";
import { Wants } from "../../../src/protocol/swarm/wants.ts";
import { BLOCK } from "./scripted.ts";

const sender = { connection: 2, address: { host: "127.0.0.1", port: 1 } };

function partial(blocks: number) {
  const open = new Set<PartialPiece>();
  const length = blocks * BLOCK - 100;
  return { open, piece: new PartialPiece(0, length, new Uint8Array(length), open) };
}

test("PartialPiece returns blocks in order, each once, and released ones again", () => {
  const { piece, open } = partial(4);
  assert.equal(piece.blockLength(3), BLOCK - 100);
  for (const expected of [0, 1, 2, 3]) {
    assert.equal(piece.firstFree(), expected);
    piece.request(expected, 2, 0);
  }
  assert.equal(piece.firstFree(), -1);
  assert.equal(open.size, 0);
  piece.release(1);
  assert.equal(piece.firstFree(), 1);
  assert.equal(open.size, 1);
});

test("PartialPiece counts a block with two requests as free once both are released, and never once it is done", () => {
  const { piece } = partial(2);
  piece.request(0, 2, 0);
  piece.request(0, 4, 0);
  piece.release(0);
  assert.equal(piece.firstFree(), 1);
  piece.finish(0, sender);
  piece.release(0);
  assert.equal(piece.firstFree(), 1);
  piece.finish(1, sender);
  assert.ok(piece.isComplete);
  piece.restart();
  assert.equal(piece.free, 2);
  assert.equal(piece.firstFree(), 0);
});

test("RequestQueue finds requests in and out of order, but not removed ones", () => {
  const queue = new RequestQueue();
  for (let i = 0; i < 10; i++) queue.push(1, i, instant(0));
  assert.equal(queue.pending, 10);
  queue.remove(queue.find(1, 5));
  assert.equal(queue.find(1, 5), -1);
  for (let i = 0; i < 10; i++) if (i !== 5) assert.ok(queue.remove(queue.find(1, i)));
  assert.equal(queue.length, 0);
  assert.equal(queue.pending, 0);
});

test("RequestQueue remembers released requests without counting them as pending", () => {
  const queue = new RequestQueue();
  for (let i = 0; i < 4; i++) queue.push(1, i, instant(0));
  const released: number[] = [];
  queue.releaseAll((_piece, block) => released.push(block));
  assert.deepEqual(released, [0, 1, 2, 3]);
  assert.equal(queue.pending, 0);
  assert.equal(queue.remove(queue.find(1, 2)), false);
  assert.equal(queue.clear(), 4);
  assert.equal(queue.find(1, 0), -1);
});

test("RequestQueue never exceeds its capacity", () => {
  const queue = new RequestQueue();
  let count = 0;
  while (!queue.isFull) queue.push(0, count++, instant(0));
  assert.equal(queue.length, count);
  assert.equal(queue.room(), 0);
});

/** A peer that answers at a constant rate, one round trip away. */
function steady(bytesPerMs: number, delayMs: number, blocks: number): RequestQueue {
  const queue = new RequestQueue();
  let now = 0;
  let asked = 0;
  let freeAt = 0;
  const arrivals: number[] = [];
  for (let got = 0; got < blocks; got++) {
    for (let room = queue.room(); room > 0; room--) {
      queue.push(0, asked++, instant(now));
      freeAt = Math.max(freeAt, now + delayMs) + BLOCK / bytesPerMs;
      arrivals.push(freeAt);
    }
    now = arrivals[got]!;
    const at = queue.find(0, got);
    queue.answered(at, BLOCK, instant(now));
    queue.remove(at);
  }
  return queue;
}

test("RequestQueue grows to bandwidth × delay, and no further", () => {
  const fast = steady(500_000, 0.2, 5_000);
  assert.equal(fast.target, MAX_REQUEST_QUEUE);
  const home = steady(1_000, 30, 1_000);
  assert.ok(home.target >= 20 && home.target <= 35, `${home.target}`);
  const slow = steady(20, 50, 100);
  assert.ok(slow.target <= MIN_REQUEST_QUEUE, `${slow.target}`);
  const far = steady(2_000, 300, 2_000);
  assert.ok(far.target * BLOCK >= 2_000 * 300, `${far.target}`);
});

test("RequestQueue expects later answers from a peer that has become silent", () => {
  const queue = steady(1_000, 30, 100);
  queue.push(0, 1_000, instant(10_000));
  const before = queue.etaMs(instant(10_001));
  assert.ok(queue.etaMs(instant(13_000)) > before + 2_000);
});

test("Wants merges ranges and interleaves urgent pieces", () => {
  const wants = new Wants();
  assert.ok(wants.set(1, { start: 0, end: 100 }, 30, 10, 50));
  assert.ok(wants.set(2, { start: 200, end: 300 }, 20, 10, 50));
  assert.ok(wants.set(3, { start: 95, end: 205 }, 1, 10, 50));
  assert.equal(wants.set(3, { start: 97, end: 207 }, 1, 10, 50), false);
  assert.deepEqual(wants.ranges, [{ start: 0, end: 30 }]);
  assert.deepEqual(wants.urgent, [0, 9, 20, 1, 21, 2]);
  assert.deepEqual(wants.distances, [0, 0, 0, 1, 1, 2]);
  assert.ok(wants.includes(29) && !wants.includes(30));
  wants.remove(3);
  assert.ok(wants.includes(9) && !wants.includes(10) && wants.includes(20));
  const have = new Bits(50);
  for (const piece of [0, 20, 1]) have.set(piece);
  assert.equal(wants.urgent[wants.firstUrgent(have)], 21);
  wants.dropped(0);
  have.clear(0);
  assert.equal(wants.urgent[wants.firstUrgent(have)], 0);
});

test("Wants ends at the end of the content", () => {
  const wants = new Wants();
  wants.set(1, { start: 0, end: 1_000 }, 1_000, 10, 5);
  assert.deepEqual(wants.ranges, [{ start: 0, end: 5 }]);
  assert.equal(wants.urgent.length, 5);
});

test("PeerPieces interprets messages from before the layout was known, or refuses them", () => {
  const late = new PeerPieces(undefined);
  late.add(3);
  late.add(600);
  assert.ok(late.settle(601));
  assert.ok(late.has(3) && late.has(600) && !late.has(4));
  const short = new PeerPieces(undefined);
  short.add(600);
  assert.equal(short.settle(600), false);
  const all = new PeerPieces(undefined);
  all.setAll();
  assert.ok(all.settle(7) && all.isAll);
  const field = new PeerPieces(undefined);
  assert.ok(field.load(Uint8Array.of(0xff, 0x80)));
  assert.equal(field.add(9), "new");
  assert.ok(field.settle(10) && field.has(8) && field.has(9));
  const wrong = new PeerPieces(undefined);
  wrong.load(Uint8Array.of(0xff));
  assert.equal(wrong.settle(10), false);
  assert.equal(new PeerPieces(undefined).add(2 ** 31), "bad");
  assert.equal(new PeerPieces(undefined).load(new Uint8Array(300_000)), false);
});
