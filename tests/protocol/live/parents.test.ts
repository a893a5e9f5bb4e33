import assert from "node:assert/strict";
import { test } from "node:test";
import { PRIORITY } from "../../../src/protocol/live/contract.ts";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

test("Parents asks several peers for a quarter of the stripes each, while no peer has proved itself", () => {
  const swarm = new Scripted();
  swarm.input({ kind: "found", addresses: [{ host: "11.9.9.9", port: 1 }] });
  for (let i = 0; i < STRIPES; i++) swarm.holder(100);
  swarm.pass(150);
  const masks = swarm.sent("subscribe").map(({ stripes }) => stripes);
  assert.equal(
    masks.reduce((all, mask) => all | mask, 0),
    15,
  );
  assert.ok(
    masks.every((mask) => (mask & (mask - 1)) === 0),
    `masks ${masks}`,
  );
});

test("Parents asks one peer for all stripes if there is no other and none is being dialed", () => {
  const swarm = new Scripted();
  const only = swarm.holder(100);
  assert.deepEqual(
    swarm.sent("subscribe", only).map(({ stripes }) => stripes),
    [15],
  );
});

test("Parents of a reachable peer prefers unreachable parents", () => {
  const swarm = new Scripted();
  swarm.input({ kind: "found", addresses: [{ host: "11.9.9.9", port: 1 }] });
  const reachable = swarm.holder(100);
  const others = Array.from({ length: STRIPES }, () => swarm.holder(100, undefined, false));
  swarm.pass(150);
  assert.equal(swarm.sent("subscribe", reachable).length, 0);
  for (const other of others) assert.equal(swarm.sent("subscribe", other).length, 1);
});

test("Parents leaves a parent that accepts and never sends a chunk, and asks another peer", () => {
  const swarm = new Scripted();
  const hole = swarm.holder(100);
  const others = Array.from({ length: 3 }, () => swarm.holder(100));
  swarm.pass(150);
  const asked = swarm.sent("subscribe", hole)[0]!.stripes;
  swarm.receive(hole, { kind: "subscribed", stripes: asked, epoch: 1, startSeq: 93 });
  for (let seq = 101; seq < 110; seq++) {
    for (const other of others) {
      swarm.receive(other, { kind: "header", isAnswer: false, header: header(seq) });
      for (let stripe = 0; stripe < STRIPES; stripe++) {
        const isRequested = swarm
          .sent("subscribe", other)
          .some(({ stripes }) => ((stripes >>> stripe) & 1) === 1);
        if (isRequested) swarm.receive(other, chunk(seq, stripe));
      }
      for (const { chunks } of swarm.sent("request", other))
        for (const { seq: wanted, stripe } of chunks)
          if (wanted <= seq) swarm.receive(other, { ...chunk(wanted, stripe), isLate: true });
      swarm.receiveWindow(other, seq);
    }
    swarm.pass(125);
  }
  assert.ok(swarm.sent("unsubscribe", hole).some(({ reason }) => reason === "bad"));
  assert.equal(swarm.sent("subscribe", hole).length, 1);
  const taken = others
    .flatMap((other) => swarm.sent("subscribe", other))
    .reduce((mask, { stripes }) => mask | stripes, 0);
  assert.equal(taken & asked, asked);
});

test("Parents leaves a new parent that gives its place to another peer before its first chunk", () => {
  const swarm = new Scripted();
  const old = swarm.holder(100);
  swarm.receive(old, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const next = swarm.holder(100);
  const refused = { kind: "refused", reason: "full", retryMs: 500, candidates: [] } as const;
  swarm.receive(old, { ...refused, stripes: 1 });
  assert.deepEqual(
    swarm.sent("subscribe", next).map(({ stripes }) => stripes),
    [1],
  );
  swarm.receive(next, { kind: "subscribed", stripes: 1, epoch: 1, startSeq: 101 });
  swarm.receive(next, { ...refused, stripes: 1 });
  // Otherwise it would send the stripe as long as its upload permits.
  assert.deepEqual(
    swarm.sent("unsubscribe", next).map(({ stripes }) => stripes),
    [1],
  );
  assert.equal(swarm.sent("unsubscribe", old).length, 0);
});

test("Parents never asks a peer whose path contains its own digest", () => {
  const swarm = new Scripted();
  const below = swarm.peer(header(100));
  swarm.receiveWindow(below, 100);
  const paths = Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, depth: 2, ancestors: [1, 9] }));
  swarm.receive(below, { kind: "paths", paths });
  swarm.pass(2_000);
  assert.equal(swarm.sent("subscribe").length, 0);
});

test("Children refuses a peer that its own stripe comes from", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(101) });
  swarm.receive(parent, chunk(101, 0));
  swarm.receive(parent, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 101,
    backfillPieces: 0,
    have: [0],
    isDesperate: true,
  });
  assert.deepEqual(
    swarm.sent("refused", parent).map(({ reason }) => reason),
    ["loop"],
  );
});

test("Children forwards a verified chunk at once, and drops a stripe of a slow child", () => {
  const swarm = new Scripted();
  const { parent, child } = betweenTwo(swarm);
  swarm.receive(parent, chunk(101, 0));
  assert.deepEqual(
    swarm.sent("chunk", child).map(({ seq, stripe }) => [seq, stripe]),
    [[101, 0]],
  );
  swarm.input({ kind: "backlog", connection: child, waitMs: 201, bytesPerSecond: 0 });
  assert.deepEqual(
    swarm.sent("unsubscribe", child).map(({ reason }) => reason),
    ["slow"],
  );
});

test("LiveSwarm: a viewer that offers no upload any more serves its children for 3 s, and refuses them until it offers some", () => {
  const swarm = new Scripted();
  const { parent, child } = betweenTwo(swarm);
  swarm.input({ kind: "offer", uploadBytesPerSecond: 0 });
  assert.deepEqual(
    swarm.sent("refused", child).map(({ stripes }) => stripes),
    [1],
  );
  swarm.receive(parent, chunk(101, 0));
  assert.equal(swarm.sent("chunk", child).length, 1);
  for (let seq = 102; seq < 127; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
    for (const each of [parent, child]) swarm.receiveWindow(each, seq - 1);
    swarm.pass(125);
  }
  assert.deepEqual(
    swarm.sent("unsubscribe", child).map(({ stripes, reason }) => [stripes, reason]),
    [[1, "moved"]],
  );
  const wanted = { stripes: 1, epoch: 1, startSeq: 127, backfillPieces: 0, have: [0], isDesperate: true };
  swarm.receive(child, { kind: "subscribe", ...wanted });
  assert.equal(swarm.sent("refused", child).length, 2);
  swarm.input({ kind: "offer", uploadBytesPerSecond: ABOUT.uploadBytesPerSecond });
  swarm.receive(child, { kind: "subscribe", ...wanted });
  assert.equal(swarm.sent("subscribed", child).at(-1)!.stripes, 1);
});

/** A parent of the viewer, and a child that wants stripe 0 from piece 101 on, whose header has arrived. */
function betweenTwo(swarm: Scripted): { readonly parent: number; readonly child: number } {
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const child = swarm.peer(undefined);
  swarm.receive(child, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 101,
    backfillPieces: 0,
    have: [0],
    isDesperate: true,
  });
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(101) });
  return { parent, child };
}

test("Children forwards late chunks at repair priority", () => {
  const swarm = new Scripted();
  const { parent } = betweenTwo(swarm);
  swarm.receive(parent, { ...chunk(101, 0), isLate: true });
  const sent = swarm
    .of("send")
    .flatMap(({ message, priority }) =>
      message.kind === "chunk" ? [{ priority, isLate: message.isLate }] : [],
    );
  assert.deepEqual(sent, [{ priority: PRIORITY.repair, isLate: true }]);
});

test("Children gives a newcomer at most one second of backlog, however much it requests", () => {
  const swarm = new Scripted({ about: { ...ABOUT, role: "source", digest: 9 } });
  for (let seq = 100; seq < 120; seq++) {
    const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
    swarm.input({ kind: "produced", header: header(seq), chunks });
  }
  const child = swarm.peer(undefined);
  swarm.receive(child, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 100,
    backfillPieces: 32,
    have: [0],
    isDesperate: true,
  });
  assert.equal(swarm.sent("chunk", child).length, 8);
});

test("Pulls requests a late chunk from a holder, and from another one after a NAK", () => {
  const swarm = new Scripted();
  const first = swarm.holder(100);
  const second = swarm.holder(100);
  swarm.pass(100);
  for (const from of [first, second])
    swarm.receive(from, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.receive(first, { kind: "header", isAnswer: false, header: header(101) });
  for (let i = 0; i < 40 && swarm.sent("request").length === 0; i++) {
    for (const from of [first, second]) swarm.receiveWindow(from, 101);
    swarm.pass(25);
  }
  const asked = [first, second].filter((from) => swarm.sent("request", from).length > 0);
  assert.ok(asked.length > 0);
  const { chunks } = swarm.sent("request", asked[0])[0]!;
  const lacking = chunks.map(({ seq, stripe }) => ({ seq, stripe, reason: "not-here" as const }));
  swarm.receive(asked[0]!, { kind: "lacking", epoch: 1, chunks: lacking, holders: [] });
  swarm.pass(450);
  const other = asked[0] === first ? second : first;
  const again = swarm.sent("request", other).flatMap((request) => request.chunks);
  assert.ok(again.some(({ seq, stripe }) => seq === chunks[0]!.seq && stripe === chunks[0]!.stripe));
});

/** A parent sends all chunks that exist of pieces 101 to 150; `stripesOf` returns how many stripes a piece has. Returns how
 * often a stripe was ended. */
function endings(stripesOf: (seq: number) => number): number {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 101 });
  for (let seq = 101; seq <= 150; seq++) {
    const made = stripesOf(seq);
    swarm.receive(parent, {
      kind: "header",
      isAnswer: false,
      header: header(seq, { pieceBytes: made * 188 }),
    });
    for (let stripe = 0; stripe < made; stripe++) swarm.receive(parent, chunk(seq, stripe));
    swarm.receiveWindow(parent, seq);
    swarm.pass(125);
  }
  assert.equal(swarm.of("piece").length, 50);
  assert.equal(swarm.of("skip").length, 0);
  return swarm.sent("unsubscribe").length;
}

test("Parents: an empty chunk arrives with its header, so no parent is left for a stripe that is often empty", () => {
  assert.equal(
    endings((seq) => (seq < 104 || seq % 20 === 0 ? STRIPES : STRIPES - 1)),
    0,
  );
  assert.equal(
    endings(() => STRIPES - 1),
    0,
  );
});

test("Parents: a source that makes empty pieces for seconds costs no parent", () => {
  assert.equal(
    endings((seq) => (seq > 110 && seq < 140 ? 0 : STRIPES)),
    0,
  );
});

test("Parents: a parent that sends only some stripes is left for the others", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 101 });
  for (let seq = 101; seq <= 120; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++)
      if (stripe > 0 || seq < 105) swarm.receive(parent, chunk(seq, stripe));
    swarm.receiveWindow(parent, seq);
    swarm.pass(125);
  }
  assert.ok(
    swarm.sent("unsubscribe", parent).some(({ stripes, reason }) => stripes === 1 && reason === "bad"),
  );
});
