import assert from "node:assert/strict";
import { test } from "node:test";
import { type Instant, instant } from "../../../src/base/time.ts";
import { PRIORITY } from "../../../src/protocol/live/contract.ts";
import type { WholeChunk } from "../../../src/protocol/live/messages.ts";
import { framed, SendQueue } from "../../../src/protocol/live/send-queue.ts";
import { decodeChunk } from "../../../src/wire/live/chunk-message.ts";
import { ChunkAssembler } from "../../../src/wire/live/fragments.ts";
import { handleOnly, PeerMessageDecoder } from "../../../src/wire/peer/peer-message.ts";
import { someBytes } from "../../engine/parts.ts";

const LIMITS = { controlBytes: 4_000, dataBytes: 200_000 };
const NEVER = instant(Number.POSITIVE_INFINITY);
const T0 = instant(0);
const ID = 7;

function someChunk(seq: number, length: number, stripe = 0): WholeChunk {
  return { kind: "chunk", epoch: 1, seq, stripe, isLate: false, bytes: someBytes(length, seq + 1) };
}

/** Decodes the bytes: `seq` of complete chunks, the text of other messages. */
function decoded(batches: readonly (Uint8Array | undefined)[]) {
  const received: (number | string)[] = [];
  const chunks = new Map<number, Uint8Array>();
  const assembler = new ChunkAssembler({ stripeCount: 4, maxPieceBytes: 2 * 1024 * 1024 });
  const decoder = new PeerMessageDecoder(
    handleOnly({
      extended: (id, payload) => {
        if (id !== ID) {
          received.push(new TextDecoder().decode(payload));
          return;
        }
        const whole = assembler.take(decodeChunk(payload, 4));
        if (!whole) return;
        received.push(whole.seq);
        chunks.set(whole.seq, whole.bytes);
      },
    }),
    { maxBitfieldBytes: 0, maxExtendedBytes: 20_000, maxBlockBytes: 0 },
  );
  for (const batch of batches) if (batch) decoder.feed(batch);
  return { received, chunks };
}

/** Takes everything, `most` bytes at a time. */
function takeAll(queue: SendQueue, now: Instant, most = 1_000_000) {
  const batches: Uint8Array[] = [];
  for (let batch = queue.take(most, now); batch; batch = queue.take(most, now)) batches.push(batch);
  return batches;
}

function say(queue: SendQueue, text: string, priority: 0 | 1 | 2 | 3 = 0, expiresAt = NEVER): boolean {
  return queue.message(framed(1, new TextEncoder().encode(text)), priority, expiresAt, T0);
}

test("SendQueue.take: orders by priority, then by age", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(31, 500), ID, PRIORITY.backfill, NEVER, T0);
  queue.chunk(someChunk(21, 500), ID, PRIORITY.repair, NEVER, T0);
  queue.chunk(someChunk(11, 500), ID, PRIORITY.live, NEVER, T0);
  queue.chunk(someChunk(12, 500), ID, PRIORITY.live, NEVER, T0);
  say(queue, "control");
  assert.deepEqual(decoded(takeAll(queue, T0)).received, ["control", 11, 12, 21, 31]);
  assert.equal(queue.bytes, 0);
});

test("SendQueue.take: a batch contains many messages, byte for byte", () => {
  const queue = new SendQueue(LIMITS);
  const chunks = [someChunk(1, 40_000), someChunk(2, 1), someChunk(3, 16_384), someChunk(4, 16_385)];
  for (const chunk of chunks) queue.chunk(chunk, ID, PRIORITY.live, NEVER, T0);
  const batches = takeAll(queue, T0);
  assert.equal(batches.length, 1);
  const { chunks: got } = decoded(batches);
  for (const { seq, bytes } of chunks) assert.deepEqual(got.get(seq), bytes);
});

test("SendQueue.take: drops expired messages, but completes a started chunk", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 50_000), ID, PRIORITY.live, instant(100), T0);
  queue.chunk(someChunk(2, 500), ID, PRIORITY.live, instant(100), T0);
  queue.chunk(someChunk(3, 500), ID, PRIORITY.live, instant(300), T0);
  const started = queue.take(1, T0);
  const rest = takeAll(queue, instant(200));
  assert.deepEqual(decoded([started, ...rest]).received, [1, 3]);
  assert.equal(queue.dropped, 1);
  assert.equal(queue.bytes, 0);
});

test("SendQueue.take: urgent messages go between the fragments of a chunk", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 50_000), ID, PRIORITY.backfill, NEVER, T0);
  const started = queue.take(1, T0);
  queue.chunk(someChunk(2, 50_000), ID, PRIORITY.repair, NEVER, T0);
  const second = queue.take(1, T0);
  queue.chunk(someChunk(3, 500), ID, PRIORITY.live, NEVER, T0);
  say(queue, "control");
  assert.deepEqual(decoded([started, second, ...takeAll(queue, T0, 1)]).received, ["control", 3, 2, 1]);
});

test("SendQueue.take: only priorities up to the given one", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 500), ID, PRIORITY.repair, NEVER, T0);
  assert.equal(queue.top(T0), PRIORITY.repair);
  assert.equal(queue.take(1_000, T0, PRIORITY.live), undefined);
  assert.ok(queue.take(1_000, T0, PRIORITY.repair));
  assert.equal(queue.top(T0), undefined);
});

test("SendQueue.chunk: beyond the limit, drops the oldest of the lowest priority, never a started chunk", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 60_000), ID, PRIORITY.backfill, NEVER, T0);
  const started = queue.take(1, T0);
  queue.chunk(someChunk(2, 60_000), ID, PRIORITY.backfill, NEVER, T0);
  queue.chunk(someChunk(3, 60_000), ID, PRIORITY.repair, NEVER, T0);
  // Replaces 2, although 1 is older.
  queue.chunk(someChunk(4, 60_000), ID, PRIORITY.live, NEVER, T0);
  // Only the started chunk and the repair are less urgent.
  queue.chunk(someChunk(5, 60_000), ID, PRIORITY.live, NEVER, T0);
  // Less urgent than all queued messages.
  queue.chunk(someChunk(6, 60_000), ID, PRIORITY.backfill, NEVER, T0);
  assert.ok(queue.bytes <= LIMITS.dataBytes);
  assert.deepEqual(decoded([started, ...takeAll(queue, T0)]).received, [4, 5, 1]);
  assert.equal(queue.dropped, 3);
});

test("SendQueue.chunk: a chunk requested while it is queued is sent once, with the higher priority", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 40_000), ID, PRIORITY.backfill, NEVER, T0);
  queue.chunk(someChunk(2, 40_000), ID, PRIORITY.backfill, NEVER, T0);
  queue.chunk(someChunk(3, 40_000), ID, PRIORITY.backfill, NEVER, T0);
  const started = queue.take(16_384, T0);
  // Its fragments would mix with the first ones, which is a protocol error of the sender.
  queue.chunk(someChunk(1, 40_000), ID, PRIORITY.repair, NEVER, T0);
  queue.chunk(someChunk(3, 40_000), ID, PRIORITY.repair, NEVER, T0);
  queue.chunk(someChunk(3, 40_000), ID, PRIORITY.repair, NEVER, T0);
  const { received, chunks } = decoded([started, ...takeAll(queue, T0, 16_384)]);
  assert.deepEqual(received, [3, 1, 2]);
  assert.deepEqual(chunks.get(1), someChunk(1, 40_000).bytes);
  assert.equal(queue.bytes, 0);
});

test("SendQueue.message: refuses control messages beyond the limit", () => {
  const queue = new SendQueue(LIMITS);
  let count = 0;
  while (say(queue, "x".repeat(100))) count++;
  assert.ok(count > 10 && count * 170 <= LIMITS.controlBytes, `${count} messages`);
  takeAll(queue, T0);
  assert.equal(say(queue, "again"), true);
});

test("SendQueue.cancel: removes a requested chunk that was not started, and no subscribed one", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 500), ID, PRIORITY.live, NEVER, T0);
  queue.chunk(someChunk(2, 50_000), ID, PRIORITY.repair, NEVER, T0);
  queue.chunk(someChunk(3, 500), ID, PRIORITY.repair, NEVER, T0);
  const first = queue.take(1, T0);
  const second = queue.take(1, T0);
  queue.chunk(someChunk(4, 500), ID, PRIORITY.live, NEVER, T0);
  for (const seq of [2, 3, 4, 5]) queue.cancel(1, seq, 0);
  assert.deepEqual(decoded([first, second, ...takeAll(queue, T0)]).received, [1, 4, 2]);
});

test("SendQueue.unsubscribe: removes subscribed chunks, except started and requested ones", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 50_000, 2), ID, PRIORITY.live, NEVER, T0);
  const started = queue.take(1, T0);
  queue.chunk(someChunk(2, 500, 2), ID, PRIORITY.live, NEVER, T0);
  queue.chunk(someChunk(3, 500, 1), ID, PRIORITY.live, NEVER, T0);
  queue.chunk(someChunk(4, 500, 0), ID, PRIORITY.live, NEVER, T0);
  queue.chunk(someChunk(5, 500, 2), ID, PRIORITY.repair, NEVER, T0);
  say(queue, "header", PRIORITY.live);
  queue.unsubscribe(0b101);
  assert.deepEqual(decoded([started, ...takeAll(queue, T0)]).received, [1, 3, "header", 5]);
  assert.equal(queue.bytes, 0);
});

test("SendQueue.oldestLiveAt: the age of queued live messages, and of those last taken", () => {
  const queue = new SendQueue(LIMITS);
  queue.chunk(someChunk(1, 500), ID, PRIORITY.repair, NEVER, instant(10));
  assert.equal(queue.oldestLiveAt, undefined);
  queue.chunk(someChunk(2, 500), ID, PRIORITY.live, NEVER, instant(20));
  queue.chunk(someChunk(3, 500), ID, PRIORITY.live, NEVER, instant(30));
  assert.equal(queue.oldestLiveAt, 20);
  queue.take(1, instant(40));
  assert.equal(queue.oldestLiveAt, 30);
  assert.equal(queue.takenLiveAt(), 20);
  assert.equal(queue.takenLiveAt(), undefined);
});
