import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { SluiceError } from "../../src/base/errors.ts";
import { instant } from "../../src/base/time.ts";
import { cutPieces } from "../../src/live/broadcast/piece-cutter.ts";
import { openLiveInput } from "../../src/live/input/source.ts";
import { SteadyTime } from "../../src/live/input/steady-time.ts";
import type { LivePiece } from "../../src/media/live-piece.ts";
import { settled } from "../engine/fake-clock.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { FakeWorld, streamOf } from "./source-parts.ts";

const OPTIONS = { pieceMs: 250, maxPieceBytes: 1 << 20, segmentMs: 2000 };

/** The pieces of this many ms, requested one after another. */
async function pieces(world: FakeWorld, next: () => Promise<LivePiece | undefined>, ms: number) {
  const got: { readonly piece: LivePiece; readonly atMs: number }[] = [];
  let isOver = false;
  const end = world.clock.now() + ms;
  const reading = (async () => {
    for (let piece = await next(); piece && !isOver; piece = await next())
      got.push({ piece, atMs: world.epochMs + world.clock.now() });
  })();
  while (world.clock.now() < end) await world.clock.advance(10);
  isOver = true;
  await settled();
  return { got, reading };
}

test("cutPieces: cuts the test pattern into pieces of a quarter second, each in time", async () => {
  const world = new FakeWorld();
  const stream = cutPieces(openLiveInput({ kind: "test-pattern" }, world.parts()), OPTIONS, world.parts());
  const { got } = await pieces(world, () => stream.next(), 10_000);
  assert.ok(got.length >= 38 && got.length <= 41, `${got.length} pieces in 10 s`);
  for (const { piece, atMs } of got) {
    assert.ok(piece.spanMs <= 260, `${piece.spanMs} ms`);
    assert.ok(atMs - piece.timestampMs <= 60, `${atMs - piece.timestampMs} ms old`);
  }
  assert.deepEqual(checkTs(concatBytes(got.map(({ piece }) => piece.bytes))).faults, []);
  const starts = got.filter(({ piece }) => piece.isSegmentStart);
  assert.ok(starts.length >= 5 && starts.length <= 6);
  assert.ok(stream.bytesPerSecond! > 20_000 && stream.bytesPerSecond! < 200_000);
  stream.close();
  await world.clock.advance(5000);
  assert.equal(world.clock.waiting, 0);
});

test("cutPieces: a late reader loses nothing, up to the last packet", async () => {
  const world = new FakeWorld();
  const sent: Uint8Array[] = [];
  function* slowly() {
    for (let i = 0; i < 200; i++) {
      const packet = new Uint8Array(188).fill(i);
      packet.set([0x47, 0x01, 0x00, 0x10 | (i & 15)]);
      sent.push(packet);
      yield packet;
    }
  }
  const input = openLiveInput({ kind: "pipe" }, world.parts({ pipe: () => streamOf(slowly()) }));
  const stream = cutPieces(input, { ...OPTIONS, maxPieceBytes: 188 * 3 }, world.parts());
  const got: Uint8Array[] = [];
  let isOver = false;
  for (let turn = 0; turn < 2000 && !isOver; turn++) {
    const next = stream.next().then((piece) => {
      if (piece) got.push(piece.bytes);
      else isOver = true;
    });
    await world.clock.advance(turn % 3 === 0 ? 300 : 0);
    await world.clock.advance(1100);
    await next;
  }
  assert.deepEqual(concatBytes(got), concatBytes(sent));
  assert.equal(world.clock.waiting, 0);
});

test("cutPieces: a silent source makes a piece every second, a failing one rejects", async () => {
  const world = new FakeWorld();
  const packet = new Uint8Array(188 * 10).fill(0xff);
  for (let at = 0; at < packet.length; at += 188) packet.set([0x47, 0x01, 0x00, 0x10 | (at / 188)], at);
  const quiet = openLiveInput({ kind: "http", url: "http://a/" }, world.parts());
  world.answer = () => ({ body: [packet, undefined] });
  const stream = cutPieces(quiet, OPTIONS, world.parts());
  const { got } = await pieces(world, () => stream.next(), 5300);
  assert.deepEqual(
    got.map(({ piece }) => piece.bytes.length),
    [1880, 0, 0, 0, 0, 0].slice(0, got.length),
  );
  assert.ok(got.length >= 5, `${got.length}`);
  stream.close();
  const broken = openLiveInput(
    { kind: "pipe" },
    world.parts({ pipe: () => streamOf([new SluiceError("disk_full", "x")]) }),
  );
  await assert.rejects(cutPieces(broken, OPTIONS, world.parts()).next(), /x/);
  const empty = openLiveInput({ kind: "pipe" }, world.parts());
  assert.equal(await cutPieces(empty, OPTIONS, world.parts()).next(), undefined);
});

test("SteadyTime: never goes back, follows the time of day, and jumps only after a sleep", () => {
  const time = new SteadyTime();
  assert.equal(time.now(instant(0), 1_000_000), 1_000_000);
  assert.equal(time.now(instant(500), 1_000_500), 1_000_500);
  // Set back by an hour: continues slightly slower.
  let last = 1_000_500;
  for (let i = 1; i <= 100; i++) {
    const now = time.now(instant(500 + 100 * i), 1_000_500 - 3_600_000 + 100 * i);
    assert.ok(now - last >= 94 && now - last <= 96, `${now - last}`);
    last = now;
  }
  // Half a second ahead: catches up within a minute.
  const other = new SteadyTime();
  other.now(instant(0), 0);
  let at = 0;
  for (; at < 60_000; at += 100) last = other.now(instant(at), at + 500);
  assert.ok(Math.abs(last - (at - 100 + 500)) < 10, `${last}`);
  assert.equal(other.now(instant(at), at + 3_600_000), at + 3_600_000);
});
