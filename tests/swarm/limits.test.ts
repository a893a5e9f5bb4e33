import assert from "node:assert/strict";
import { test } from "node:test";
import { type Budget, NO_LIMIT } from "../../src/base/rate-limit.ts";
import type { SwarmLimits } from "../../src/swarm/contract.ts";
import { makeContent, ScriptedSwarm } from "./scripted.ts";

const content = makeContent(16, 16);

/** Limits that let all pass and note what is taken and given back. */
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
  const upload: Budget = { ...NO_LIMIT, fairBytesPerSecond: () => noted.fair };
  const limits: SwarmLimits = { upload, download, isExempt: () => isExempt };
  return { noted, limits };
}

test("Swarm gives back what it was refused, and what a peer that goes still owed", () => {
  const { noted, limits } = notingLimits();
  const it = new ScriptedSwarm(content, { limits });
  const peer = it.peer().seed();
  it.want(0, content.bytes.length, content.layout.pieceLength);
  it.pass(500);
  peer.answer(1);
  assert.equal(noted.spent, 0);
  const [refused] = peer.asked.splice(0, 1);
  peer.say((writer) => writer.reject(refused!.piece, refused!.begin, refused!.length));
  assert.equal(noted.spent, -refused!.length);
  const owed = peer.asked.length;
  assert.ok(owed > 0);
  it.input({ kind: "closed", connection: peer.connection, reason: "gone" });
  assert.equal(noted.spent, -refused!.length - owed * refused!.length);
  // All that was taken has come, or was given back.
  assert.equal(noted.taken + noted.spent, it.swarm.figures(it.now).downloaded);
});

test("Swarm leaves nobody choked for whom its limits do not hold, and takes no slot for them", () => {
  const { noted, limits } = notingLimits(true);
  noted.fair = 1;
  const it = new ScriptedSwarm(content, { limits });
  const peers = Array.from({ length: 12 }, () => it.peer());
  for (const peer of peers.slice(1)) peer.say((writer) => writer.interested());
  it.pass(11_000);
  assert.ok(peers.slice(1).every(({ heard }) => heard.includes("unchoke")));
  assert.ok(!peers[0]!.heard.includes("unchoke"), "it wants nothing");
  peers[1]!.say((writer) => writer.notInterested());
  it.pass(11_000);
  assert.ok(peers[1]!.heard.includes("choke"));
});

test("Swarm counts its slots anew from its part of the limit, as others come and go", () => {
  const { noted, limits } = notingLimits();
  noted.fair = 3 * 32 * 1024;
  const it = new ScriptedSwarm(content, { limits });
  const peers = Array.from({ length: 12 }, () => it.peer());
  for (const peer of peers) peer.say((writer) => writer.interested());
  const unchoked = () =>
    peers.filter(({ heard }) => heard.lastIndexOf("unchoke") > heard.lastIndexOf("choke")).length;
  it.pass(11_000);
  assert.equal(unchoked(), 3);
  noted.fair = 9 * 32 * 1024;
  it.pass(11_000);
  assert.equal(unchoked(), 9);
  noted.fair = 1;
  it.pass(70_000);
  assert.equal(unchoked(), 3);
});
