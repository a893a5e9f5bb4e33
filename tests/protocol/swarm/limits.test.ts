import assert from "node:assert/strict";
import { test } from "node:test";
import { type Budget, NO_LIMIT } from "../../../src/base/rate-limit.ts";
import type { SwarmLimits } from "../../../src/protocol/swarm/contract.ts";
import { makeContent, ScriptedSwarm } from "./scripted.ts";

const content = makeContent(16, 16);

/** Limits that allow everything and record what is charged and refunded. */
function notingLimits(isExempt = false) {
  const noted = { taken: 0, spent: 0, fair: 0 };
  const download: Budget = {
    ...NO_LIMIT,
    take: (bytes) => {
      noted.taken += bytes;
      return true;
    },
    spend: (bytes) => {
      noted.spent += bytes;
    },
  };
  const upload: Budget = { ...NO_LIMIT, fairShareBytesPerSecond: () => noted.fair };
  const limits: SwarmLimits = { upload, download, isExempt: () => isExempt };
  return { noted, limits };
}

test("Swarm refunds rejected requests, and what a disconnected peer still owed", () => {
  const { noted, limits } = notingLimits();
  const it = new ScriptedSwarm(content, { limits });
  const peer = it.peer().seed();
  it.want(0, content.bytes.length, content.layout.pieceLength);
  it.pass(500);
  peer.answer(1);
  assert.equal(noted.spent, 0);
  const [refused] = peer.requests.splice(0, 1);
  peer.send((writer) => writer.reject(refused!.piece, refused!.begin, refused!.length));
  assert.equal(noted.spent, -refused!.length);
  const owed = peer.requests.length;
  assert.ok(owed > 0);
  it.input({ kind: "closed", connection: peer.connection, reason: "gone" });
  assert.equal(noted.spent, -refused!.length - owed * refused!.length);
  // Everything charged has arrived or was refunded.
  assert.equal(noted.taken + noted.spent, it.swarm.figures(it.now).downloaded);
});

test("Swarm unchokes peers that are exempt from its limits, without using slots", () => {
  const { noted, limits } = notingLimits(true);
  noted.fair = 1;
  const it = new ScriptedSwarm(content, { limits });
  const peers = Array.from({ length: 12 }, () => it.peer());
  for (const peer of peers.slice(1)) peer.send((writer) => writer.interested());
  it.pass(11_000);
  assert.ok(peers.slice(1).every(({ received }) => received.includes("unchoke")));
  assert.ok(!peers[0]!.received.includes("unchoke"), "it wants nothing");
  peers[1]!.send((writer) => writer.notInterested());
  it.pass(11_000);
  assert.ok(peers[1]!.received.includes("choke"));
});

test("Swarm adapts its slots to its share of the upload limit", () => {
  const { noted, limits } = notingLimits();
  noted.fair = 3 * 32 * 1024;
  const it = new ScriptedSwarm(content, { limits });
  const peers = Array.from({ length: 12 }, () => it.peer());
  for (const peer of peers) peer.send((writer) => writer.interested());
  const unchoked = () =>
    peers.filter(({ received }) => received.lastIndexOf("unchoke") > received.lastIndexOf("choke")).length;
  it.pass(11_000);
  assert.equal(unchoked(), 3);
  noted.fair = 9 * 32 * 1024;
  it.pass(11_000);
  assert.equal(unchoked(), 9);
  noted.fair = 1;
  it.pass(70_000);
  assert.equal(unchoked(), 3);
});
