import assert from "node:assert/strict";
import { test } from "node:test";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

const SUBSCRIBE = { kind: "subscribe", epoch: 1, isDesperate: true } as const;

/** What a child of one stripe is promised, and gets at once, by a source of this upload that has pieces 100 to 119. */
function promised(uploadBytesPerSecond: number): { readonly startSeq: number; readonly chunks: number } {
  const about = { ...ABOUT, role: "source" as const, digest: 9, uploadBytesPerSecond };
  const swarm = new Scripted({ about });
  for (let seq = 100; seq < 120; seq++) {
    const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
    swarm.input({ kind: "produced", header: header(seq), chunks });
  }
  const child = swarm.peer(undefined);
  swarm.say(child, { ...SUBSCRIBE, stripes: 1, startSeq: 100, backfillPieces: 32, have: [0] });
  const { startSeq } = swarm.told("subscribed", child)[0]!;
  return { startSeq, chunks: swarm.told("chunk", child).length };
}

test("Children promises no more backlog than it has upload for", () => {
  assert.deepEqual(promised(1_000_000), { startSeq: 112, chunks: 8 });
  assert.deepEqual(promised(3_000), { startSeq: 119, chunks: 1 });
});

/** What a newcomer pulls of a parent that says yes from `startSeq` on, within 100 ms. */
function pulledAtOnce(startSeq: number): number[] {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  for (let seq = 93; seq < 100; seq++)
    swarm.say(parent, { kind: "header", isAnswer: true, header: header(seq) });
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq });
  swarm.pass(100);
  const asked = swarm.told("request", parent).flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  return [...new Set(asked)].sort((a, b) => a - b);
}

test("Pulls asks at once for what no parent has promised", () => {
  assert.deepEqual(pulledAtOnce(93), []);
  const pulled = pulledAtOnce(101);
  assert.equal(pulled.at(-1), 100);
  assert.ok(pulled.length >= 5, `${pulled}`);
});

/** A viewer with a parent of all stripes and a child of stripe 0, both from piece 101 on. */
function betweenTwo(): { readonly swarm: Scripted; readonly parent: number; readonly child: number } {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const child = swarm.peer(header(100));
  swarm.say(child, { ...SUBSCRIBE, stripes: 1, startSeq: 101, backfillPieces: 0, have: [0] });
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(101) });
  return { swarm, parent, child };
}

test("Children hands nothing down that the child has called back", () => {
  const { swarm, parent, child } = betweenTwo();
  swarm.say(child, { kind: "cancel", epoch: 1, chunks: [{ seq: 101, stripe: 0 }] });
  swarm.say(parent, { ...chunk(101, 0), isLate: true });
  assert.equal(swarm.told("chunk", child).length, 0);
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(102) });
  swarm.say(parent, { ...chunk(102, 0), isLate: true });
  assert.equal(swarm.told("chunk", child).length, 1);
});

test("Pulls calls what came from another back from the parent that lacks it", () => {
  const { swarm, parent } = betweenTwo();
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.say(parent, chunk(100, stripe));
  const holder = swarm.holder(100);
  for (let seq = 101; seq < 115; seq++) {
    if (seq > 101) swarm.say(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++)
      if (seq !== 105 || stripe !== 2) swarm.say(parent, chunk(seq, stripe));
    swarm.tellWindow(parent, Math.min(seq, 104));
    swarm.tellWindow(holder, seq);
    swarm.pass(125);
  }
  const asked = swarm.told("request", holder).flatMap(({ chunks }) => chunks);
  assert.deepEqual(
    asked.map(({ seq, stripe }) => [seq, stripe]),
    [[105, 2]],
  );
  assert.deepEqual(swarm.told("cancel", parent), []);
  swarm.say(holder, { ...chunk(105, 2), isLate: true });
  assert.deepEqual(
    swarm.told("cancel", parent).map(({ chunks }) => chunks),
    [[{ seq: 105, stripe: 2 }]],
  );
});

test("Pulls calls what came from another back from who was too slow", () => {
  const swarm = new Scripted();
  const holders = [swarm.holder(100)];
  const slow = holders[0]!;
  swarm.pass(100);
  swarm.say(slow, { kind: "header", isAnswer: false, header: header(101) });
  const asked = (of: number) =>
    swarm.told("request", of).flatMap(({ chunks }) => chunks.filter(({ seq }) => seq === 101));
  const waitFor = (of: number) => {
    for (let i = 0; i < 100 && asked(of).length === 0; i++) {
      for (const holder of holders) swarm.tellWindow(holder, 101);
      swarm.pass(25);
    }
  };
  waitFor(slow);
  const second = swarm.holder(100);
  holders.push(second);
  waitFor(second);
  const { seq, stripe } = asked(second)[0]!;
  swarm.say(second, { ...chunk(seq, stripe), isLate: true });
  const named = swarm.told("cancel", slow).flatMap(({ chunks }) => chunks);
  assert.ok(named.some((each) => each.seq === seq && each.stripe === stripe));
});

test("News tells children of a stripe at once where it comes from now, and others within a second or so", () => {
  const { swarm, parent, child } = betweenTwo();
  const other = swarm.peer(header(100));
  // Until neither is young any more.
  for (let seq = 102; seq < 150; seq++) {
    swarm.say(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.say(parent, chunk(seq, stripe));
    for (const each of [parent, child, other]) swarm.tellWindow(each, seq);
    swarm.pass(125);
  }
  const before = [swarm.told("paths", child).length, swarm.told("paths", other).length];
  const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 2, ancestors: [8, 9] }));
  swarm.say(parent, { kind: "paths", paths });
  swarm.pass(55);
  const news = swarm.told("paths", child).slice(before[0]);
  assert.deepEqual(news[0]?.paths, [{ stripe: 0, depth: 3, ancestors: [101, 8, 9] }]);
  swarm.pass(1_300);
  const told = swarm
    .told("paths", other)
    .slice(before[1])
    .flatMap((message) => message.paths);
  assert.deepEqual(
    told.map(({ stripe, depth }) => [stripe, depth]),
    [0, 1, 2, 3].map((stripe) => [stripe, 3]),
  );
  const until = swarm.told("paths", other).length;
  for (let i = 0; i < 40; i++) {
    const moved = paths.map((path) => ({ ...path, ancestors: [20 + i, 9] }));
    swarm.say(parent, { kind: "paths", paths: moved });
    for (const each of [parent, child, other]) swarm.tellWindow(each, 149);
    swarm.pass(100);
  }
  const times = swarm.told("paths", other).length - until;
  assert.ok(times >= 3 && times <= 5, `${times} in four seconds`);
});
