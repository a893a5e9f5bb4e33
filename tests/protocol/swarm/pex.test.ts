import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { Pex } from "../../../src/protocol/swarm/pex.ts";

const at = (ms: number) => instant(ms);
const peers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => ({ address: { host: `8.8.${from + i}.1`, port: 6881 }, flags: 0 }));

test("Pex.delta: sends changes once a minute, and nothing without changes", () => {
  const pex = new Pex();
  assert.equal(pex.delta(peers(3), undefined, at(0))!.added.length, 3);
  assert.equal(pex.delta(peers(9), undefined, at(59_999)), undefined);
  assert.equal(pex.nextWake(), 60_000);
  const second = pex.delta(peers(3, 1), undefined, at(60_000))!;
  assert.deepEqual(second.added, peers(1, 3));
  assert.deepEqual(second.dropped, [peers(1)[0]!.address]);
  assert.equal(pex.delta(peers(3, 1), undefined, at(120_000)), undefined);
});

test("Pex.delta: at most 50 of each, the rest a minute later, without the receiver", () => {
  const pex = new Pex();
  const all = peers(120);
  const receiver = all[0]!.address;
  const sizes = [0, 1, 2].map((i) => pex.delta(all, receiver, at(i * 60_000))!.added.length);
  assert.deepEqual(sizes, [50, 50, 19]);
  assert.equal(pex.delta([], receiver, at(180_000))!.dropped.length, 50);
});

test("Pex.limit: takes about one message a minute, ignores floods, closes on abuse", () => {
  const pex = new Pex();
  for (let minute = 0; minute < 60; minute++) assert.equal(pex.limit(at(minute * 60_000)), "take");
  const flood = Array.from({ length: 100 }, (_, i) => pex.limit(at(3_600_000 + i)));
  assert.equal(flood.filter((verdict) => verdict === "take").length, 3);
  assert.equal(flood.at(-1), "close");
  assert.equal(flood.filter((verdict) => verdict === "ignore").length, 20);
});
