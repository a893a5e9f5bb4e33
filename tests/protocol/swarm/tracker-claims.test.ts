import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { after, type Instant } from "../../../src/base/time.ts";
import { TrackerClaims } from "../../../src/protocol/swarm/tracker-claims.ts";
import type { AnnounceReply } from "../../../src/wire/tracker/announce.ts";
import { makeContent, ScriptedSwarm } from "./scripted.ts";

const START = 0 as Instant;
const replyOf = (more: Partial<AnnounceReply & { ok: true }> = {}): AnnounceReply => ({
  ok: true,
  peers: [],
  intervalSeconds: 1800,
  ...more,
});

test("TrackerClaims.figures returns the largest counts, and how many trackers answered and failed", () => {
  const claims = new TrackerClaims();
  assert.deepEqual(claims.figures(3), {
    known: 3,
    answered: 0,
    failing: 0,
    problem: undefined,
    seeds: undefined,
    leechers: undefined,
  });
  claims.replied("a", replyOf({ counts: { seeders: 4, leechers: 1 } }), START);
  claims.replied("b", replyOf({ counts: { seeders: 2, leechers: 9 } }), START);
  claims.replied("c", { ok: false, reason: "time-out" }, START);
  const figures = { known: 3, answered: 2, failing: 1, problem: "time-out", seeds: 4, leechers: 9 };
  assert.deepEqual(claims.figures(3), figures);
  claims.replied("a", { ok: false, reason: "refused" }, START);
  assert.equal(claims.figures(3).seeds, 4, "the counts of a tracker remain");
});

test("TrackerClaims.replied requests a scrape if counts are missing, once in half an hour", () => {
  const claims = new TrackerClaims();
  assert.equal(claims.replied("a", replyOf({ counts: { seeders: 0, leechers: 0 } }), START), false);
  assert.equal(claims.replied("b", { ok: false, reason: "no" }, START), false);
  assert.equal(claims.replied("b", replyOf(), START), true);
  assert.equal(claims.replied("b", replyOf(), after(START, 1_799_999)), false);
  claims.scraped("b", { seeders: 3, leechers: 2 });
  claims.scraped("never asked", { seeders: 1e9, leechers: 1e9 });
  assert.equal(claims.figures(2).seeds, 3);
  assert.equal(claims.replied("b", replyOf(), after(START, 1_800_000)), true);
});

test("Swarm scrapes, reports the counts, and never connects to the external address that trackers report", () => {
  const url = "http://t.example/announce";
  const it = new ScriptedSwarm(makeContent(2, 1), { trackers: [[url]] });
  it.want(0, 1);
  const asked = it.outputs.find((output) => output.kind === "announce");
  assert.ok(asked?.kind === "announce");
  const own: PeerAddress = { host: "5.6.7.8", port: asked.announce.port };
  const other: PeerAddress = { host: "5.6.7.8", port: asked.announce.port + 1 };
  it.input({ kind: "announced", url, reply: replyOf({ peers: [own, other], externalAddress: own.host }) });
  const connects = it.outputs.flatMap((output) => (output.kind === "connect" ? [output.address] : []));
  assert.deepEqual(connects, [other]);
  assert.deepEqual(
    it.outputs.filter((output) => output.kind === "scrape"),
    [{ kind: "scrape", url }],
  );
  it.input({ kind: "scraped", url, counts: { seeders: 6, leechers: 1 } });
  assert.deepEqual(it.swarm.figures(it.now).trackers, {
    known: 1,
    answered: 1,
    failing: 0,
    problem: undefined,
    seeds: 6,
    leechers: 1,
  });
});
