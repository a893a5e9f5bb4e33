import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { PieceWindow } from "../../../src/swarm/live/window.ts";
import { ABOUT, chunk, hashOf, header, Scripted, STRIPES } from "./scripted.ts";

const NOW = instant(0);

/** The header of `seq` that follows `before`: what lies between was never made. */
function after(before: number, seq: number) {
  return header(seq, { previousHash: hashOf(header(before).bytes), timestampMs: seq * 125 });
}

/** A viewer whose only parent gives everything from piece 100 on. */
function playing(): { swarm: Scripted; parent: number } {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.pass(300);
  for (let seq = 100; seq < 110; seq++) send(swarm, parent, seq);
  return { swarm, parent };
}

function send(swarm: Scripted, from: number, seq: number, of = header(seq)): void {
  swarm.say(from, { kind: "header", isAnswer: false, header: of });
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.say(from, chunk(seq, stripe));
}

function playedBy(swarm: Scripted): number[] {
  return swarm.of("piece").map((piece) => piece.header.value.seq);
}

test("PieceWindow counts numbers that were never made as there, and as nothing to wait for", () => {
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

test("LiveSwarm passes over numbers that were never made: none is skipped, none is asked for", () => {
  const { swarm, parent } = playing();
  swarm.outputs.length = 0;
  send(swarm, parent, 134, after(109, 134));
  assert.deepEqual(playedBy(swarm), [134]);
  swarm.pass(1_000);
  assert.equal(swarm.of("skip").length, 0);
  assert.equal(swarm.swarm.figures(swarm.now).skippedPieces, 0);
  const asked = swarm.told("request").flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  assert.deepEqual(
    asked.filter((seq) => seq > 109 && seq < 134),
    [],
  );
  assert.deepEqual(swarm.told("headerRequest"), []);
  const window = swarm.told("window").at(-1)!.window;
  assert.equal(window.baseSeq, 135);
});

test("LiveSwarm finds the gap as well where the header before it comes last", () => {
  const { swarm, parent } = playing();
  send(swarm, parent, 134, after(110, 134));
  assert.equal(playedBy(swarm).at(-1), 109);
  send(swarm, parent, 110);
  assert.deepEqual(playedBy(swarm).slice(-2), [110, 134]);
  assert.equal(swarm.of("skip").length, 0);
});

test("LiveSwarm keeps the first of two headers that cannot follow each other, and tells of the fork once", () => {
  const { swarm, parent } = playing();
  const other = swarm.peer(undefined);
  const forked = header(110, { previousHash: new Uint8Array(20), timestampMs: 110 * 125 });
  for (let i = 0; i < 3; i++) swarm.say(other, { kind: "header", isAnswer: false, header: forked });
  assert.deepEqual(
    swarm.of("forked").map(({ seq }) => seq),
    [110],
  );
  assert.equal(swarm.of("banned").length, 0);
  send(swarm, parent, 110);
  assert.equal(playedBy(swarm).at(-1), 110);
});

test("LiveSwarm takes no piece between two that name each other", () => {
  const { swarm, parent } = playing();
  send(swarm, parent, 134, after(109, 134));
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(120) });
  assert.deepEqual(
    swarm.of("forked").map(({ seq }) => seq),
    [120],
  );
  assert.equal(swarm.of("banned").length, 0);
});

test("LiveSwarm bans nobody for chunks of the other version, while two sign", () => {
  const { swarm, parent } = playing();
  const other = swarm.peer(undefined);
  swarm.say(other, { kind: "header", isAnswer: false, header: header(109, { timestampMs: 109 * 125 + 1 }) });
  assert.equal(swarm.of("forked").length, 1);
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(110) });
  swarm.say(other, chunk(110, 0, false));
  assert.equal(swarm.of("banned").length, 0);
  swarm.pass(60_000);
  const again = swarm.peer(undefined);
  const liar = swarm.holder(110);
  swarm.say(liar, chunk(110, 1, false));
  assert.equal(swarm.of("banned").length, 1);
  assert.notEqual(again, liar);
});

test("LiveSwarm as the source tells of pieces that another has signed with its key, and takes none", () => {
  const swarm = new Scripted({ about: { ...ABOUT, role: "source", digest: 9 } });
  const peer = swarm.peer(header(150));
  const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(100, stripe).bytes);
  assert.equal(swarm.of("forked").length, 0);
  swarm.input({ kind: "produced", header: header(100), chunks });
  // What it made in its former life, and what it has just made.
  for (const seq of [90, 100]) swarm.say(peer, { kind: "header", isAnswer: false, header: header(seq) });
  assert.equal(swarm.of("forked").length, 0);
  swarm.say(peer, { kind: "header", isAnswer: false, header: header(101) });
  assert.equal(swarm.of("forked").length, 1);
  swarm.say(peer, { kind: "header", isAnswer: false, header: header(5, { epoch: 2 }) });
  assert.equal(swarm.of("forked").length, 2);
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 100);
});
