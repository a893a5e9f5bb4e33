import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

/** A viewer that joined at piece 100 with one parent. */
function joined(): { swarm: Scripted; parent: number } {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(700);
  return { swarm, parent };
}

function sendPiece(swarm: Scripted, from: number, seq: number): void {
  swarm.receive(from, { kind: "header", isAnswer: false, header: header(seq) });
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(from, chunk(seq, stripe));
}

test("LiveSwarm plays a complete, verified piece", () => {
  const { swarm, parent } = joined();
  sendPiece(swarm, parent, 100);
  assert.deepEqual(
    swarm.of("piece").map((piece) => piece.header.value.seq),
    [100],
  );
});

test("LiveSwarm bans the sender of a chunk with a wrong hash, and neither plays nor forwards the chunk", () => {
  const { swarm, parent } = joined();
  const child = swarm.peer(undefined);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.receive(child, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 100,
    backfillPieces: 8,
    have: [0],
    isDesperate: true,
  });
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(100) });
  swarm.receive(parent, chunk(100, 0, false));
  assert.equal(swarm.of("banned").length, 1);
  assert.equal(swarm.sent("chunk", child).length, 0);
  assert.equal(swarm.of("piece").length, 0);
});

test("LiveSwarm bans the sender of a header with a wrong signature, after one verification", () => {
  const { swarm, parent } = joined();
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(101, {}, false) });
  assert.equal(swarm.of("banned").length, 1);
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 100);
});

test("LiveSwarm verifies a limited number of headers of a peer, then disconnects it", () => {
  let verified = 0;
  const swarm = new Scripted({
    isSigned: () => {
      verified++;
      return true;
    },
  });
  const liar = swarm.holder(100);
  swarm.pass(700);
  for (let seq = 101; seq < 1_101; seq++)
    swarm.receive(liar, { kind: "header", isAnswer: false, header: header(seq) });
  assert.ok(verified <= 100, `${verified} verifications`);
  assert.equal(swarm.of("banned").length, 1);
});

test("LiveSwarm keeps the first of two headers that the source signed for one number, and reports the fork", () => {
  const { swarm, parent } = joined();
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(101) });
  swarm.receive(parent, {
    kind: "header",
    isAnswer: false,
    header: header(101, { timestampMs: 101 * 125 + 1 }),
  });
  assert.deepEqual(
    swarm.of("forked").map(({ seq }) => seq),
    [101],
  );
  assert.equal(swarm.swarm.figures(swarm.now).lastTsMs, 101 * 125);
});

test("LiveSwarm does not start at a replayed head if another peer has a newer one", () => {
  const swarm = new Scripted();
  swarm.holder(100);
  const honest = swarm.holder(1_000);
  swarm.pass(700);
  sendPiece(swarm, honest, 1_000);
  assert.equal(swarm.of("piece")[0]?.header.value.seq, 1_000);
});

test("LiveSwarm disconnects a peer that floods it with chunks of unknown pieces, and keeps a limited number of them", () => {
  const { swarm, parent } = joined();
  for (let i = 0; i < 500; i++) swarm.receive(parent, chunk(5_000 + i, 0));
  assert.equal(swarm.of("banned").length, 1);
});

test("LiveSwarm prefers a new epoch to an old one, and accepts nothing of the old one afterwards", () => {
  const { swarm, parent } = joined();
  swarm.receive(parent, {
    kind: "header",
    isAnswer: false,
    header: header(1, { epoch: 2, timestampMs: 101 * 125 }),
  });
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 1);
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(102) });
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 1);
});

test("LiveSwarm ignores a peer that has not sent HELLO", () => {
  const swarm = new Scripted();
  swarm.input({
    kind: "accepted",
    connection: 1,
    address: { host: "11.0.0.1", port: 1 },
    isReachable: true,
    rttMs: 10,
    about: { role: "viewer", uploadBytesPerSecond: 0, homeStripe: 0, digest: 5 },
  });
  swarm.receive(1, { kind: "header", isAnswer: false, header: header(5) });
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, undefined);
});
