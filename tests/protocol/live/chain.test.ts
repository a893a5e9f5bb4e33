import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { PieceWindow } from "../../../src/protocol/live/window.ts";
import { ABOUT, chunk, hashOf, header, Scripted, STRIPES } from "./scripted.ts";

const NOW = instant(0);

/** The header of `seq` that follows `before`: the numbers between them were never made. */
function after(before: number, seq: number) {
  return header(seq, { previousHash: hashOf(header(before).bytes), timestampMs: seq * 125 });
}

/** A viewer whose only parent sends everything from piece 100 on. */
function playing(): { swarm: Scripted; parent: number } {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.pass(300);
  for (let seq = 100; seq < 110; seq++) send(swarm, parent, seq);
  return { swarm, parent };
}

function send(swarm: Scripted, from: number, seq: number, of = header(seq)): void {
  swarm.receive(from, { kind: "header", isAnswer: false, header: of });
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(from, chunk(seq, stripe));
}

function playedBy(swarm: Scripted): number[] {
  return swarm.of("piece").map((piece) => piece.header.value.seq);
}

test("PieceWindow counts numbers that were never made as held, and does not wait for them", () => {
  const window = new PieceWindow(STRIPES, 64);
  window.addHeader(header(10), NOW);
  window.addHeader(header(20), NOW);
  assert.equal(window.below(20)?.seq, 10);
  assert.equal(window.above(10)?.seq, 20);
  assert.equal(window.isWhole(15), false);
  window.addGap(11, 20);
  for (const seq of [11, 15, 19]) {
    assert.ok(window.isWhole(seq));
    assert.ok(window.has(seq, 0));
    assert.equal(window.piece(seq), undefined);
    assert.equal(window.nextMade(seq), 20);
  }
  assert.equal(window.nextMade(10), 10);
  assert.equal(window.isWhole(20), false);
  window.reset();
  assert.equal(window.isWhole(15), false);
});

test("LiveSwarm passes over numbers that were never made without skipping or requesting them", () => {
  const { swarm, parent } = playing();
  swarm.outputs.length = 0;
  send(swarm, parent, 134, after(109, 134));
  assert.deepEqual(playedBy(swarm), [134]);
  swarm.pass(1_000);
  assert.equal(swarm.of("skip").length, 0);
  assert.equal(swarm.swarm.figures(swarm.now).skippedPieces, 0);
  const asked = swarm.sent("request").flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  assert.deepEqual(
    asked.filter((seq) => seq > 109 && seq < 134),
    [],
  );
  assert.deepEqual(swarm.sent("headerRequest"), []);
  const window = swarm.sent("window").at(-1)!.window;
  assert.equal(window.baseSeq, 135);
});

test("LiveSwarm finds the gap also if the header before it arrives last", () => {
  const { swarm, parent } = playing();
  send(swarm, parent, 134, after(110, 134));
  assert.equal(playedBy(swarm).at(-1), 109);
  send(swarm, parent, 110);
  assert.deepEqual(playedBy(swarm).slice(-2), [110, 134]);
  assert.equal(swarm.of("skip").length, 0);
});

test("LiveSwarm keeps the first of two headers that cannot follow each other, and reports the fork once", () => {
  const { swarm, parent } = playing();
  const other = swarm.peer(undefined);
  const forked = header(110, { previousHash: new Uint8Array(20), timestampMs: 110 * 125 });
  for (let i = 0; i < 3; i++) swarm.receive(other, { kind: "header", isAnswer: false, header: forked });
  assert.deepEqual(
    swarm.of("forked").map(({ seq }) => seq),
    [110],
  );
  assert.equal(swarm.of("banned").length, 0);
  send(swarm, parent, 110);
  assert.equal(playedBy(swarm).at(-1), 110);
});

test("LiveSwarm rejects a piece between two of which one follows the other", () => {
  const { swarm, parent } = playing();
  send(swarm, parent, 134, after(109, 134));
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(120) });
  assert.deepEqual(
    swarm.of("forked").map(({ seq }) => seq),
    [120],
  );
  assert.equal(swarm.of("banned").length, 0);
});

test("LiveSwarm bans no peer for chunks of the other version during a fork", () => {
  const { swarm, parent } = playing();
  const other = swarm.peer(undefined);
  swarm.receive(other, {
    kind: "header",
    isAnswer: false,
    header: header(109, { timestampMs: 109 * 125 + 1 }),
  });
  assert.equal(swarm.of("forked").length, 1);
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(110) });
  swarm.receive(other, chunk(110, 0, false));
  assert.equal(swarm.of("banned").length, 0);
  swarm.pass(60_000);
  const again = swarm.peer(undefined);
  const liar = swarm.holder(110);
  swarm.receive(liar, chunk(110, 1, false));
  assert.equal(swarm.of("banned").length, 1);
  assert.notEqual(again, liar);
});

test("LiveSwarm as the source reports pieces that another program signed with its key, and accepts none", () => {
  const swarm = new Scripted({ about: { ...ABOUT, role: "source", digest: 9 } });
  const peer = swarm.peer(header(150));
  const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(100, stripe).bytes);
  assert.equal(swarm.of("forked").length, 0);
  swarm.input({ kind: "produced", header: header(100), chunks });
  // Pieces from before its restart, and the one it has just made.
  for (const seq of [90, 100]) swarm.receive(peer, { kind: "header", isAnswer: false, header: header(seq) });
  assert.equal(swarm.of("forked").length, 0);
  swarm.receive(peer, { kind: "header", isAnswer: false, header: header(101) });
  assert.equal(swarm.of("forked").length, 1);
  swarm.receive(peer, { kind: "header", isAnswer: false, header: header(5, { epoch: 2 }) });
  assert.equal(swarm.of("forked").length, 2);
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 100);
});
