import assert from "node:assert/strict";
import { test } from "node:test";
import { Lab, type LabNode, PIECE_MS } from "./lab.ts";

const JOINS = 20;
/** One second of media. */
const SECOND = 1_000 / PIECE_MS;

/** Joins twenty times at all phases of a stream on links of 1 ms: ms until the first piece, and until one
 * second of media. */
function joins(keyframeMs: number, knows: (source: LabNode, others: readonly LabNode[]) => LabNode[]) {
  const lab = new Lab(1);
  lab.randomAccessEvery = keyframeMs / PIECE_MS;
  const source = lab.add({ role: "source" });
  lab.produce(source, 6_000);
  const others = Array.from({ length: 5 }, () => lab.add());
  for (const other of others) other.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 4_000);
  const firstMs: number[] = [];
  const secondMs: number[] = [];
  for (let i = 0; i < JOINS; i++) {
    lab.produce(source, PIECE_MS * (1 + ((7 * i) % 11)));
    const node = lab.add();
    const addresses = knows(source, others).map(({ address }) => address);
    const offMs = 6 * i;
    const at = lab.now + offMs;
    lab.later(() => node.handle({ kind: "found", addresses }), offMs);
    lab.produce(source, 3_000);
    firstMs.push((node.played[0]?.at ?? Number.POSITIVE_INFINITY) - at);
    secondMs.push((node.played[SECOND - 1]?.at ?? Number.POSITIVE_INFINITY) - at);
    assert.deepEqual(node.skipped, []);
    lab.kill(node);
  }
  return { firstMs: worstOf(firstMs), secondMs: worstOf(secondMs) };
}

/** The 95th percentile of twenty values. */
function worstOf(times: number[]): number {
  return times.sort((a, b) => a - b)[JOINS - 2]!;
}

for (const keyframeMs of [500, 1_000, 2_000]) {
  test(`LiveSwarm plays 0.1 s after it knows a source near by that is full, a second of media after 0.4 s: keyframes each ${keyframeMs} ms`, () => {
    const { firstMs, secondMs } = joins(keyframeMs, (source) => [source]);
    assert.ok(firstMs <= 110, `${firstMs} ms`);
    assert.ok(secondMs <= 400, `${secondMs} ms`);
  });
}

test("LiveSwarm joins as quickly through viewers alone", () => {
  const { firstMs, secondMs } = joins(1_000, (_, others) => [...others]);
  assert.ok(firstMs <= 60, `${firstMs} ms`);
  assert.ok(secondMs <= 400, `${secondMs} ms`);
});

test("LiveSwarm waits at most 0.1 s for peers that do not respond", () => {
  const lab = new Lab(1);
  const source = lab.add({ role: "source" });
  const viewer = lab.add();
  lab.produce(source, 3_000);
  viewer.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 1_000);
  const node = lab.add();
  const at = lab.now;
  lab.silence("10.9.9.9");
  node.handle({ kind: "found", addresses: [viewer.address, { host: "10.9.9.9", port: 1 }] });
  lab.produce(source, 1_000);
  assert.ok(node.played[0]!.at - at >= 100);
  assert.ok(node.played[0]!.at - at <= 150, `${node.played[0]!.at - at} ms`);
});

test("LiveSwarm starts again if the first head was outdated", () => {
  const lab = new Lab(1);
  const source = lab.add({ role: "source" });
  const laggard = lab.add();
  lab.produce(source, 2_000);
  laggard.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 2_000);
  lab.cut(laggard);
  lab.produce(source, 20_000);
  const node = lab.add();
  node.handle({ kind: "found", addresses: [laggard.address] });
  lab.produce(source, 500);
  node.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 4_000);
  assert.ok(node.played.at(-1)!.seq >= lab.seq - 8, `${lab.seq - node.played.at(-1)!.seq} pieces behind`);
});

test("LiveSwarm joins if its only neighbours had no head when they sent HELLO", () => {
  const lab = new Lab(1);
  const source = lab.add({ role: "source" });
  const [near, far] = [lab.add(), lab.add()];
  far.handle({ kind: "found", addresses: [near.address] });
  near.handle({ kind: "found", addresses: [source.address] });
  lab.pass(1_000);
  assert.deepEqual([near.played.length, far.played.length], [0, 0]);
  const at = lab.now;
  lab.produce(source, 3_000);
  for (const node of [near, far]) {
    assert.ok(node.played.length >= 1_500 / PIECE_MS, `${node.played.length} pieces`);
    assert.ok(node.played[0]!.at - at <= 1_000, `${node.played[0]!.at - at} ms`);
    assert.deepEqual(node.skipped, []);
  }
});

for (const [awayMs, continues] of [
  [1_500, true],
  [10_000, false],
] as const) {
  test(`LiveSwarm ${continues ? "continues after" : "does not go back to"} pieces from before a restart of ${awayMs} ms`, () => {
    const lab = new Lab(1);
    const source = lab.add({ role: "source" });
    const restored = Array.from({ length: 40 }, () => {
      const piece = lab.piece();
      source.handle({ kind: "produced", ...piece });
      lab.pass(PIECE_MS);
      return piece;
    });
    lab.produce(source, awayMs);
    const viewer = lab.add({ setup: { restored } });
    viewer.handle({ kind: "found", addresses: [source.address] });
    lab.produce(source, 2_000);
    const nextSeq = restored.at(-1)!.header.value.seq + 1;
    assert.equal(viewer.played[0]!.seq === nextSeq, continues);
    assert.ok(viewer.played[0]!.seq >= nextSeq);
    assert.deepEqual(viewer.skipped, []);
  });
}

for (const [upload, leastMs, startMs] of [
  [10_000_000, 5_000, 500],
  // Half of the bitrate beside the stream: after three seconds, playback begins with what is there.
  [36_096, 0, 3_500],
] as const) {
  test(`LiveSwarm begins with whole segments before the edge if it is asked for history, and the source uploads ${upload} B/s`, () => {
    const lab = new Lab(1);
    lab.segmentEvery = 2_000 / PIECE_MS;
    const source = lab.add({ role: "source", upload });
    lab.produce(source, 20_000);
    const node = lab.add();
    node.handle({ kind: "history", ms: 7_000 });
    const head = lab.seq - 1;
    const at = lab.now;
    node.handle({ kind: "found", addresses: [source.address] });
    lab.produce(source, 10_000);
    const [first] = node.played;
    assert.ok(first && first.at - at <= startMs, `${first && first.at - at} ms`);
    assert.equal(first.seq % lab.segmentEvery, 0);
    assert.ok((head + 1 - first.seq) * PIECE_MS >= leastMs, `${head - first.seq} pieces before the head`);
    assert.deepEqual(node.skipped, []);
    const numbers = node.played.map(({ seq }) => seq);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => first.seq + index),
    );
    assert.ok(numbers.at(-1)! >= lab.seq - 8, "it is at the edge");
  });
}

test("LiveSwarm fetches the history of a time without a player, too", () => {
  const lab = new Lab(1);
  lab.segmentEvery = 2_000 / PIECE_MS;
  const source = lab.add({ role: "source" });
  const node = lab.add();
  lab.produce(source, 2_000);
  node.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 4_000);
  node.handle({ kind: "idle", isIdle: true });
  lab.produce(source, 20_000);
  node.played.length = 0;
  const head = lab.seq - 1;
  node.handle({ kind: "history", ms: 7_000 });
  node.handle({ kind: "idle", isIdle: false });
  lab.produce(source, 3_000);
  const [first] = node.played;
  assert.ok(
    first && (head + 1 - first.seq) * PIECE_MS >= 5_000,
    `${head - (first?.seq ?? 0)} pieces before the head`,
  );
  assert.equal(first.seq % lab.segmentEvery, 0);
});

test("LiveSwarm waits for the headers of the history from far peers", () => {
  const lab = new Lab(150);
  lab.segmentEvery = 2_000 / PIECE_MS;
  const source = lab.add({ role: "source" });
  lab.produce(source, 20_000);
  const node = lab.add();
  node.handle({ kind: "history", ms: 7_000 });
  const head = lab.seq - 1;
  node.handle({ kind: "found", addresses: [source.address] });
  lab.produce(source, 6_000);
  const [first] = node.played;
  assert.ok(first && (head + 1 - first.seq) * PIECE_MS >= 2_000, `${head - (first?.seq ?? 0)} pieces`);
  assert.equal(first.seq % lab.segmentEvery, 0);
  assert.deepEqual(node.skipped, []);
});
