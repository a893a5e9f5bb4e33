import assert from "node:assert/strict";
import { test } from "node:test";
import { type LiveRules, PRIORITY } from "../../../src/swarm/live/contract.ts";
import { LIVE_RULES } from "../../../src/swarm/live/limits.ts";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

test("Parents asks several for a quarter of the stripes each, while nobody has proved itself", () => {
  const swarm = new Scripted();
  swarm.input({ kind: "found", addresses: [{ host: "11.9.9.9", port: 1 }] });
  for (let i = 0; i < STRIPES; i++) swarm.holder(100);
  swarm.pass(150);
  const masks = swarm.told("subscribe").map(({ stripes }) => stripes);
  assert.equal(
    masks.reduce((all, mask) => all | mask, 0),
    15,
  );
  assert.ok(
    masks.every((mask) => (mask & (mask - 1)) === 0),
    `masks ${masks}`,
  );
});

test("Parents asks one for everything where there is no other and none is being called", () => {
  const swarm = new Scripted();
  const only = swarm.holder(100);
  assert.deepEqual(
    swarm.told("subscribe", only).map(({ stripes }) => stripes),
    [15],
  );
});

test("Parents leaves those who can be called to others, where it can be called itself", () => {
  const swarm = new Scripted();
  swarm.input({ kind: "found", addresses: [{ host: "11.9.9.9", port: 1 }] });
  const reachable = swarm.holder(100);
  const others = Array.from({ length: STRIPES }, () => swarm.holder(100, undefined, false));
  swarm.pass(150);
  assert.equal(swarm.told("subscribe", reachable).length, 0);
  for (const other of others) assert.equal(swarm.told("subscribe", other).length, 1);
});

test("Parents leaves one that said yes and never begins, and asks another", () => {
  const swarm = new Scripted();
  const hole = swarm.holder(100);
  const others = Array.from({ length: 3 }, () => swarm.holder(100));
  swarm.pass(150);
  const asked = swarm.told("subscribe", hole)[0]!.stripes;
  swarm.say(hole, { kind: "subscribed", stripes: asked, epoch: 1, startSeq: 93 });
  for (let seq = 101; seq < 110; seq++) {
    for (const other of others) {
      swarm.say(other, { kind: "header", isAnswer: false, header: header(seq) });
      for (let stripe = 0; stripe < STRIPES; stripe++) {
        const isAsked = swarm
          .told("subscribe", other)
          .some(({ stripes }) => ((stripes >>> stripe) & 1) === 1);
        if (isAsked) swarm.say(other, chunk(seq, stripe));
      }
      swarm.tellWindow(other, seq);
    }
    swarm.pass(125);
  }
  assert.ok(swarm.told("unsubscribe", hole).some(({ reason }) => reason === "bad"));
  assert.equal(swarm.told("subscribe", hole).length, 1);
  const taken = others
    .flatMap((other) => swarm.told("subscribe", other))
    .reduce((mask, { stripes }) => mask | stripes, 0);
  assert.equal(taken & asked, asked);
});

test("Parents never asks one whose path goes through ourselves", () => {
  const swarm = new Scripted();
  const below = swarm.peer(header(100));
  swarm.tellWindow(below, 100);
  const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 2, ancestors: [1, 9] }));
  swarm.say(below, { kind: "paths", paths });
  swarm.pass(2_000);
  assert.equal(swarm.told("subscribe").length, 0);
});

test("Children refuses whom its own stripe comes from", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(101) });
  swarm.say(parent, chunk(101, 0));
  swarm.say(parent, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 101,
    backfillPieces: 0,
    have: [0],
    isDesperate: true,
  });
  assert.deepEqual(
    swarm.told("refused", parent).map(({ reason }) => reason),
    ["loop"],
  );
});

test("Children forwards a verified chunk at once, and a child that is slow loses a stripe", () => {
  const swarm = new Scripted();
  const { parent, child } = betweenTwo(swarm);
  swarm.say(parent, chunk(101, 0));
  assert.deepEqual(
    swarm.told("chunk", child).map(({ seq, stripe }) => [seq, stripe]),
    [[101, 0]],
  );
  swarm.input({ kind: "backlog", connection: child, waitMs: 201 });
  assert.deepEqual(
    swarm.told("unsubscribe", child).map(({ reason }) => reason),
    ["slow"],
  );
});

/** A parent of the viewer, and a child of it that wants stripe 0 from piece 101 on, whose header has come. */
function betweenTwo(swarm: Scripted): { readonly parent: number; readonly child: number } {
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const child = swarm.peer(undefined);
  swarm.say(child, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 101,
    backfillPieces: 0,
    have: [0],
    isDesperate: true,
  });
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(101) });
  return { parent, child };
}

/** What a viewer sends to a child when a chunk comes late. */
function sentLate(rules: Partial<LiveRules>): { readonly priority: number; readonly isLate: boolean }[] {
  const swarm = new Scripted({ rules: { ...LIVE_RULES, ...rules } });
  const { parent } = betweenTwo(swarm);
  swarm.say(parent, { ...chunk(101, 0), isLate: true });
  return swarm
    .of("send")
    .flatMap(({ message, priority }) =>
      message.kind === "chunk" ? [{ priority, isLate: message.isLate }] : [],
    );
}

test("Children forwards late chunks at repair priority, and only with that rule", () => {
  assert.deepEqual(sentLate({}), [{ priority: PRIORITY.repair, isLate: true }]);
  assert.deepEqual(sentLate({ yieldsLate: false }), [{ priority: PRIORITY.live, isLate: true }]);
});

/** How many pieces of backlog a greedy child gets from one that has twenty. */
function backlogGiven(rules: Partial<LiveRules>): number {
  const swarm = new Scripted({
    rules: { ...LIVE_RULES, ...rules },
    about: { ...ABOUT, role: "source", digest: 9 },
  });
  for (let seq = 100; seq < 120; seq++) {
    const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
    swarm.input({ kind: "produced", header: header(seq), chunks });
  }
  const child = swarm.peer(undefined);
  swarm.say(child, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 100,
    backfillPieces: 32,
    have: [0],
    isDesperate: true,
  });
  return swarm.told("chunk", child).length;
}

test("Children gives a newcomer no more than a second of backlog, however much it asks for", () => {
  assert.equal(backlogGiven({}), 8);
  assert.equal(backlogGiven({ backfillMs: 3_000 }), 20);
});

test("Pulls asks a holder for what is late, and another where that one says no", () => {
  const swarm = new Scripted();
  const first = swarm.holder(100);
  const second = swarm.holder(100);
  swarm.pass(100);
  for (const from of [first, second])
    swarm.say(from, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.say(first, { kind: "header", isAnswer: false, header: header(101) });
  for (let i = 0; i < 40 && swarm.told("request").length === 0; i++) {
    for (const from of [first, second]) swarm.tellWindow(from, 101);
    swarm.pass(25);
  }
  const asked = [first, second].filter((from) => swarm.told("request", from).length > 0);
  assert.ok(asked.length > 0);
  const { chunks } = swarm.told("request", asked[0])[0]!;
  const lacking = chunks.map(({ seq, stripe }) => ({ seq, stripe, reason: "not-here" as const }));
  swarm.say(asked[0]!, { kind: "lacking", epoch: 1, chunks: lacking, holders: [] });
  swarm.pass(450);
  const other = asked[0] === first ? second : first;
  const again = swarm.told("request", other).flatMap((request) => request.chunks);
  assert.ok(again.some(({ seq, stripe }) => seq === chunks[0]!.seq && stripe === chunks[0]!.stripe));
});
