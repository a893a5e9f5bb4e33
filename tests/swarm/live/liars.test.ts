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
  swarm.say(from, { kind: "header", isAnswer: false, header: header(seq) });
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.say(from, chunk(seq, stripe));
}

test("LiveSwarm gives out a whole, verified piece", () => {
  const { swarm, parent } = joined();
  sendPiece(swarm, parent, 100);
  assert.deepEqual(
    swarm.of("piece").map((piece) => piece.header.value.seq),
    [100],
  );
});

test("LiveSwarm bans the sender of a chunk that does not fit its hash, and neither gives it out nor forwards it", () => {
  const { swarm, parent } = joined();
  const child = swarm.peer(undefined);
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.say(child, {
    kind: "subscribe",
    stripes: 1,
    epoch: 1,
    startSeq: 100,
    backfillPieces: 8,
    have: [0],
    isDesperate: true,
  });
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(100) });
  swarm.say(parent, chunk(100, 0, false));
  assert.equal(swarm.of("banned").length, 1);
  assert.equal(swarm.told("chunk", child).length, 0);
  assert.equal(swarm.of("piece").length, 0);
});

test("LiveSwarm bans the sender of a header that the source did not sign, after one verification", () => {
  const { swarm, parent } = joined();
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(101, {}, false) });
  assert.equal(swarm.of("banned").length, 1);
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 100);
});

test("LiveSwarm verifies so many headers of a peer and no more, then cuts it off", () => {
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
    swarm.say(liar, { kind: "header", isAnswer: false, header: header(seq) });
  assert.ok(verified <= 100, `${verified} verifications`);
  assert.equal(swarm.of("banned").length, 1);
});

test("LiveSwarm keeps the first of two headers that the source signed for one number, and tells of the fork", () => {
  const { swarm, parent } = joined();
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(101) });
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(101, { timestampMs: 101 * 125 + 1 }) });
  assert.deepEqual(
    swarm.of("forked").map(({ seq }) => seq),
    [101],
  );
  assert.equal(swarm.swarm.figures(swarm.now).lastTsMs, 101 * 125);
});

test("LiveSwarm does not start at a replayed head while another peer has a newer one", () => {
  const swarm = new Scripted();
  swarm.holder(100);
  const honest = swarm.holder(1_000);
  swarm.pass(700);
  sendPiece(swarm, honest, 1_000);
  assert.equal(swarm.of("piece")[0]?.header.value.seq, 1_000);
});

test("LiveSwarm cuts off who floods it with chunks that nobody signed, and keeps none beyond its limit", () => {
  const { swarm, parent } = joined();
  for (let i = 0; i < 500; i++) swarm.say(parent, chunk(5_000 + i, 0));
  assert.equal(swarm.of("banned").length, 1);
});

test("LiveSwarm takes a new epoch over an old one, and nothing of the old one after that", () => {
  const { swarm, parent } = joined();
  swarm.say(parent, {
    kind: "header",
    isAnswer: false,
    header: header(1, { epoch: 2, timestampMs: 101 * 125 }),
  });
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 1);
  swarm.say(parent, { kind: "header", isAnswer: false, header: header(102) });
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, 1);
});

test("LiveSwarm hears nobody who has not said hello", () => {
  const swarm = new Scripted();
  swarm.input({
    kind: "accepted",
    connection: 1,
    address: { host: "11.0.0.1", port: 1 },
    isReachable: true,
    rttMs: 10,
    about: { role: "viewer", uploadBytesPerSecond: 0, homeStripe: 0, clockMs: 0, digest: 5 },
  });
  swarm.say(1, { kind: "header", isAnswer: false, header: header(5) });
  assert.equal(swarm.swarm.figures(swarm.now).lastSeq, undefined);
});
