import assert from "node:assert/strict";
import { test } from "node:test";
import { PieceBufferPool } from "../../src/storage/piece-buffers.ts";
import { type MemoryOwner, type MemoryPiece, PieceMemory } from "../../src/storage/piece-memory.ts";
import { FakeClock } from "../engine/fake-clock.ts";

function owner(wanted: ReadonlySet<number>) {
  const evicted: number[] = [];
  const it: MemoryOwner & { evicted(entry: MemoryPiece): void } = {
    isWanted: (piece) => wanted.has(piece),
    evicted: (entry) => void evicted.push(entry.piece),
  };
  return { it, evicted };
}

function entryOf(
  owner: MemoryOwner,
  piece: number,
  bytes: Uint8Array<ArrayBuffer>,
  state: MemoryPiece["state"],
): MemoryPiece {
  return { owner, piece, bytes, state, isRead: false, isLate: false };
}

test("PieceBufferPool.take stays within the limit but guarantees each transfer two pieces", () => {
  const pool = new PieceBufferPool(300);
  const [a, b] = [pool.forTransfer(() => {}), pool.forTransfer(() => {})];
  for (let i = 0; i < 3; i++) assert.equal(a.take(100)?.length, 100);
  assert.equal(a.take(100), undefined);
  assert.ok(b.take(100));
  assert.ok(b.take(100));
  assert.equal(b.take(100), undefined);
  assert.equal(pool.inUseBytes, 500);
});

test("PieceBufferPool: a transfer without a buffer is notified once when memory is free", () => {
  const pool = new PieceBufferPool(200);
  let calls = 0;
  const a = pool.forTransfer(() => calls++);
  const held = [a.take(100)!, a.take(100)!];
  assert.equal(a.take(100), undefined);
  assert.equal(calls, 0);
  a.give(held[0]!);
  assert.equal(calls, 1);
  a.give(held[1]!);
  assert.equal(calls, 1);
  assert.equal(pool.inUseBytes, 0);
});

test("PieceBufferPool: a transfer is notified when its guarantee allows a piece although the limit is reached", () => {
  const pool = new PieceBufferPool(100);
  let calls = 0;
  const a = pool.forTransfer(() => calls++);
  a.take(100);
  a.take(100);
  assert.equal(a.take(100), undefined);
  a.filled();
  assert.equal(calls, 1);
  assert.ok(a.take(100));
});

test("PieceBufferPool.take reuses buffers while others are in use", () => {
  const pool = new PieceBufferPool(200);
  const a = pool.forTransfer(() => {});
  const [first, second] = [a.take(100)!, a.take(100)!];
  a.give(first);
  assert.equal(a.take(100), first);
  a.give(second);
  a.give(first);
  const later = a.take(100);
  assert.ok(later !== first && later !== second, "without pieces the pool keeps no memory");
});

test("PieceBufferPool.take reuses the whole overdraft that is returned at once", () => {
  const MIB = 1024 * 1024;
  const pool = new PieceBufferPool(MIB);
  const a = pool.forTransfer(() => {});
  a.take(MIB);
  const overdraft = Array.from({ length: 8 }, () => pool.take(MIB, true)!);
  for (const buffer of overdraft) pool.give(buffer);
  const again = new Set(Array.from({ length: 8 }, () => pool.take(MIB, true)));
  assert.deepEqual(again, new Set(overdraft));
});

test("PieceBufferPool: buffers in use and spare ones together stay within the limit and the overdraft", () => {
  const MIB = 1024 * 1024;
  const pool = new PieceBufferPool(4 * MIB);
  const one = pool.takeAnyway(MIB);
  const old = Array.from({ length: 11 }, () => pool.takeAnyway(MIB));
  for (const buffer of old) pool.give(buffer);
  // A new length does not fit beside the spare buffers, so they are released.
  const other = pool.takeAnyway(2 * MIB);
  const next = pool.takeAnyway(MIB);
  assert.ok(!old.includes(next));
  // Beyond the limit a returned buffer is not kept.
  const many = Array.from({ length: 10 }, () => pool.takeAnyway(2 * MIB));
  pool.give(many[0]!);
  assert.notEqual(pool.takeAnyway(2 * MIB), many[0]);
  for (const buffer of [...many.slice(1), other, one, next]) pool.give(buffer);
});

test("PieceMemory evicts pieces on disk, those not needed first; never other pieces", () => {
  for (const isLate of [true, false]) {
    const pool = new PieceBufferPool(600);
    const memory = new PieceMemory(pool, new FakeClock());
    const { it, evicted } = owner(new Set([0, 3, 4]));
    const states: MemoryPiece["state"][] = ["saved", "unsaved", "saved", "alone", "unsaved", "writing"];
    for (const [piece, state] of states.entries())
      memory.add({ ...entryOf(it, piece, pool.take(100, false)!, state), isLate });
    const taken = [0, 1, 2].map(() => pool.take(100, false)?.length);
    // A needed piece is evicted only if no other piece is about to be on disk.
    assert.deepEqual(evicted, isLate ? [2, 0] : [2]);
    assert.deepEqual(taken, [100, isLate ? 100 : undefined, undefined]);
  }
});

test("PieceMemory: of the needed pieces on disk the newest is evicted first, and the piece being read last", async () => {
  const pool = new PieceBufferPool(400);
  const clock = new FakeClock();
  const memory = new PieceMemory(pool, clock);
  const { it, evicted } = owner(new Set([0, 1, 2, 3]));
  const entries = [0, 1, 2, 3].map((piece) => entryOf(it, piece, pool.take(100, false)!, "saved"));
  for (const entry of entries) memory.add(entry);
  memory.touch(entries[0]!);
  await clock.advance(100);
  for (const _ of entries) assert.ok(pool.take(100, false));
  assert.deepEqual(evicted, [3, 2, 1, 0]);
});

test("PieceMemory waits for a fast reader instead of evicting what it reads next, and no longer than that", async () => {
  const length = 1024 * 1024;
  const clock = new FakeClock();
  const pool = new PieceBufferPool(16 * length);
  const memory = new PieceMemory(pool, clock);
  const wanted = new Set<number>();
  const { it, evicted } = owner(wanted);
  let freed = 0;
  const view = pool.forTransfer(() => freed++);
  const entries: MemoryPiece[] = [];
  const receive = () => {
    const bytes = view.take(length);
    if (bytes === undefined) return false;
    view.filled();
    wanted.add(entries.length);
    entries.push(entryOf(it, entries.length, bytes, "saved"));
    memory.add(entries.at(-1)!);
    return true;
  };
  // The peers are twice as fast as the reader, which reads 100 MB/s.
  for (let read = 0; read < 100; read++) {
    for (let i = 0; i < 2; i++) receive();
    memory.touch(entries[read]!);
    await clock.advance(10);
    wanted.delete(read);
    memory.changed();
  }
  assert.ok(evicted.every((piece, i) => piece === i));
  assert.ok(pool.inUseBytes <= (16 + 8) * length);
  // The reader stops.
  while (receive());
  const [freedBefore, evictedBefore] = [freed, evicted.length];
  await clock.advance(100);
  assert.equal(freed, freedBefore + 1);
  assert.ok(receive());
  assert.ok(evicted.slice(evictedBefore).every((piece) => wanted.has(piece)));
  assert.ok(evicted.length > evictedBefore);
});

test("PieceMemory does not wait for a reader at playing speed", async () => {
  const length = 1024 * 1024;
  const clock = new FakeClock();
  const pool = new PieceBufferPool(2 * length);
  const memory = new PieceMemory(pool, clock);
  const { it, evicted } = owner(new Set([0, 1]));
  const entries = [0, 1].map((piece) => entryOf(it, piece, pool.take(length, false)!, "saved"));
  for (const entry of entries) memory.add(entry);
  memory.touch(entries[0]!);
  await clock.advance(50);
  assert.ok(pool.take(length, false));
  assert.deepEqual(evicted, [1]);
});

test("PieceMemory evicts pieces that a slow disk has not written only for guaranteed pieces, and far over the limit", () => {
  const length = 4 * 1024 * 1024;
  const pool = new PieceBufferPool(3 * length);
  const memory = new PieceMemory(pool, new FakeClock());
  const { it, evicted } = owner(new Set([1]));
  for (const piece of [0, 1, 2])
    memory.add({ ...entryOf(it, piece, pool.take(length, false)!, "unsaved"), isLate: true });
  assert.equal(pool.take(length, false), undefined);
  assert.ok(pool.take(length, true) && pool.take(length, true));
  assert.deepEqual(evicted, []);
  assert.ok(pool.take(length, true) && pool.take(length, true));
  assert.deepEqual(evicted, [0, 2]);
});

test("PieceBufferPool.take waits for a disk that makes progress, and notifies when it has written or is late", () => {
  const length = 4 * 1024 * 1024;
  for (const [state, isLate] of [["saved", false] as const, ["unsaved", true] as const]) {
    const pool = new PieceBufferPool(length);
    const memory = new PieceMemory(pool, new FakeClock());
    const { it, evicted } = owner(new Set());
    let calls = 0;
    const view = pool.forTransfer(() => calls++);
    const entries = [0, 1, 2].map((piece) => {
      const entry = entryOf(it, piece, view.take(length)!, piece === 0 ? "writing" : "unsaved");
      view.filled();
      memory.add(entry);
      return entry;
    });
    assert.equal(view.take(length), undefined);
    memory.changed();
    assert.equal(calls, 0);
    assert.deepEqual(evicted, []);
    for (const entry of entries.slice(1)) entry.isLate = isLate;
    entries[1]!.state = state;
    memory.changed();
    assert.equal(calls, 1);
    assert.deepEqual(evicted, [1]);
    assert.ok(view.take(length));
  }
});

test("PieceBufferPool.take: a write that never ends blocks no transfer", () => {
  const pool = new PieceBufferPool(100);
  const memory = new PieceMemory(pool, new FakeClock());
  const length = 16 * 1024 * 1024;
  memory.add({ ...entryOf(owner(new Set()).it, 0, pool.takeAnyway(3 * length), "writing"), isLate: true });
  assert.ok(pool.take(length, true));
});

test("PieceMemory evicts the least recently read pieces first", () => {
  const pool = new PieceBufferPool(300);
  const memory = new PieceMemory(pool, new FakeClock());
  const { it, evicted } = owner(new Set());
  const entries = [0, 1, 2].map((piece) => {
    const entry = entryOf(it, piece, pool.take(100, false)!, "saved");
    memory.add(entry);
    return entry;
  });
  memory.touch(entries[0]!);
  pool.take(200, false);
  assert.deepEqual(evicted, [1, 2]);
});
