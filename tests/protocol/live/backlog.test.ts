import assert from "node:assert/strict";
import { test } from "node:test";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

const SUBSCRIBE = { kind: "subscribe", epoch: 1, isDesperate: true } as const;

/** What a source with this upload and pieces 100 to 119 promises a child of one stripe, and sends at once. */
function promised(uploadBytesPerSecond: number): { readonly startSeq: number; readonly chunks: number } {
  const about = { ...ABOUT, role: "source" as const, digest: 9, uploadBytesPerSecond };
  const swarm = new Scripted({ about });
  for (let seq = 100; seq < 120; seq++) {
    const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
    swarm.input({ kind: "produced", header: header(seq), chunks });
  }
  const child = swarm.peer(undefined);
  swarm.receive(child, { ...SUBSCRIBE, stripes: 1, startSeq: 100, backfillPieces: 32, have: [0] });
  const { startSeq } = swarm.sent("subscribed", child)[0]!;
  return { startSeq, chunks: swarm.sent("chunk", child).length };
}

test("Children promises no more backlog than it has upload for", () => {
  assert.deepEqual(promised(1_000_000), { startSeq: 112, chunks: 8 });
  assert.deepEqual(promised(3_000), { startSeq: 119, chunks: 1 });
});

/** What a newcomer pulls within 100 ms from a parent that accepts it from `startSeq` on. */
function pulledAtOnce(startSeq: number): number[] {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  for (let seq = 93; seq < 100; seq++)
    swarm.receive(parent, { kind: "header", isAnswer: true, header: header(seq) });
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq });
  swarm.pass(100);
  const asked = swarm.sent("request", parent).flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  return [...new Set(asked)].sort((a, b) => a - b);
}

test("Pulls requests at once what no parent has promised", () => {
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
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const child = swarm.peer(header(100));
  swarm.receive(child, { ...SUBSCRIBE, stripes: 1, startSeq: 101, backfillPieces: 0, have: [0] });
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(101) });
  return { swarm, parent, child };
}

test("Children does not forward a chunk that the child has cancelled", () => {
  const { swarm, parent, child } = betweenTwo();
  swarm.receive(child, { kind: "cancel", epoch: 1, chunks: [{ seq: 101, stripe: 0 }] });
  swarm.receive(parent, { ...chunk(101, 0), isLate: true });
  assert.equal(swarm.sent("chunk", child).length, 0);
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(102) });
  swarm.receive(parent, { ...chunk(102, 0), isLate: true });
  assert.equal(swarm.sent("chunk", child).length, 1);
});

test("Pulls cancels a chunk that arrived from another peer at the parent that lacks it", () => {
  const { swarm, parent } = betweenTwo();
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(100, stripe));
  const holder = swarm.holder(100);
  for (let seq = 101; seq < 115; seq++) {
    if (seq > 101) swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++)
      if (seq !== 105 || stripe !== 2) swarm.receive(parent, chunk(seq, stripe));
    swarm.receiveWindow(parent, Math.min(seq, 104));
    swarm.receiveWindow(holder, seq);
    swarm.pass(125);
  }
  const asked = swarm.sent("request", holder).flatMap(({ chunks }) => chunks);
  assert.deepEqual(
    asked.map(({ seq, stripe }) => [seq, stripe]),
    [[105, 2]],
  );
  assert.deepEqual(swarm.sent("cancel", parent), []);
  swarm.receive(holder, { ...chunk(105, 2), isLate: true });
  assert.deepEqual(
    swarm.sent("cancel", parent).map(({ chunks }) => chunks),
    [[{ seq: 105, stripe: 2 }]],
  );
});

test("Pulls cancels a chunk that arrived from another peer at the peer that was too slow", () => {
  const swarm = new Scripted();
  const holders = [swarm.holder(100)];
  const slow = holders[0]!;
  swarm.pass(100);
  swarm.receive(slow, { kind: "header", isAnswer: false, header: header(101) });
  const asked = (of: number) =>
    swarm.sent("request", of).flatMap(({ chunks }) => chunks.filter(({ seq }) => seq === 101));
  const waitFor = (of: number) => {
    for (let i = 0; i < 100 && asked(of).length === 0; i++) {
      for (const holder of holders) swarm.receiveWindow(holder, 101);
      swarm.pass(25);
    }
  };
  waitFor(slow);
  const second = swarm.holder(100);
  holders.push(second);
  waitFor(second);
  const { seq, stripe } = asked(second)[0]!;
  swarm.receive(second, { ...chunk(seq, stripe), isLate: true });
  const named = swarm.sent("cancel", slow).flatMap(({ chunks }) => chunks);
  assert.ok(named.some((each) => each.seq === seq && each.stripe === stripe));
});

test("Advertiser sends a changed path to children of the stripe at once, and to other peers within about a second", () => {
  const { swarm, parent, child } = betweenTwo();
  const other = swarm.peer(header(100));
  // Until neither counts as new.
  for (let seq = 102; seq < 150; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
    for (const each of [parent, child, other]) swarm.receiveWindow(each, seq);
    swarm.pass(125);
  }
  const before = [swarm.sent("paths", child).length, swarm.sent("paths", other).length];
  const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 2, ancestors: [8, 9] }));
  swarm.receive(parent, { kind: "paths", paths });
  swarm.pass(55);
  const news = swarm.sent("paths", child).slice(before[0]);
  assert.deepEqual(news[0]?.paths, [{ stripe: 0, depth: 3, ancestors: [101, 8, 9] }]);
  swarm.pass(1_300);
  const sent = swarm
    .sent("paths", other)
    .slice(before[1])
    .flatMap((message) => message.paths);
  assert.deepEqual(
    sent.map(({ stripe, depth }) => [stripe, depth]),
    [0, 1, 2, 3].map((stripe) => [stripe, 3]),
  );
  const until = swarm.sent("paths", other).length;
  for (let i = 0; i < 40; i++) {
    const moved = paths.map((path) => ({ ...path, ancestors: [20 + i, 9] }));
    swarm.receive(parent, { kind: "paths", paths: moved });
    for (const each of [parent, child, other]) swarm.receiveWindow(each, 149);
    swarm.pass(100);
  }
  const times = swarm.sent("paths", other).length - until;
  assert.ok(times >= 3 && times <= 5, `${times} in four seconds`);
});
