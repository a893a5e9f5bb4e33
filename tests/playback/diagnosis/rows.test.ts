import assert from "node:assert/strict";
import { test } from "node:test";
import { IncomingCount } from "../../../src/net/incoming.ts";
import { ClockCheck } from "../../../src/playback/diagnosis/clock-check.ts";
import { peerDiscoveryRows } from "../../../src/playback/diagnosis/peer-discovery-rows.ts";
import { diagnoseStream } from "../../../src/playback/diagnosis/stream-diagnosis.ts";
import type { PeerFigures, PeerOrigin } from "../../../src/protocol/swarm/contract.ts";
import { NO_FIGURES } from "../../../src/protocol/swarm/figures.ts";
import type { Transfer } from "../../../src/transfer/contract.ts";
import { FakeClock } from "../../engine/fake-clock.ts";

const peer = (origin: PeerOrigin, flags = "d", bytesPerSecondDown = 100_000): PeerFigures => ({
  address: { host: "198.51.100.7", port: 1 },
  origin,
  client: "someone",
  bytesPerSecondDown,
  bytesPerSecondUp: 0,
  progress: 1,
  flags,
});

test("peerDiscoveryRows: counts connected peers by origin, and trackers by result", () => {
  assert.equal(peerDiscoveryRows([])[0]!.level, "ok");
  assert.equal(peerDiscoveryRows([NO_FIGURES])[0]!.level, "fail");
  const trackers = { ...NO_FIGURES.trackers, known: 3, answered: 1, failing: 2 };
  const [peers, answered] = peerDiscoveryRows([
    { ...NO_FIGURES, trackers, peers: [peer("dht"), peer("tracker"), peer("dht")] },
  ]);
  assert.equal(peers!.text, "3 peers are connected: 2 from the DHT, 1 from trackers.");
  assert.equal(answered!.level, "ok");
  const dead = { ...trackers, answered: 0, failing: 3, problem: "no route" };
  const [, failing] = peerDiscoveryRows([{ ...NO_FIGURES, trackers: dead, peers: [peer("lsd")] }]);
  assert.equal(failing!.level, "warn");
  assert.match(failing!.text, /no route/);
});

test("diagnoseStream: gives the reason why a peer is slow", () => {
  const peers = [
    peer("dht"),
    peer("pex", "D", 0),
    peer("pex", "ds", 0),
    peer("dht", "d", 2_000),
    peer("dht", "u", 0),
  ];
  const transfer = { infohash: "00".repeat(20), name: "film", figures: { ...NO_FIGURES, peers } };
  const { peers: diagnosed, origins } = diagnoseStream(transfer as unknown as Transfer, []);
  assert.deepEqual(origins, { dht: 3, pex: 2 });
  const [fast, choking, snubbing, slow, uninteresting] = diagnosed.map((each) => each.slow);
  assert.equal(fast, undefined);
  assert.match(choking!, /choking us/);
  assert.match(snubbing!, /has not answered requests/);
  assert.match(slow!, /connection is slow/);
  assert.equal(uninteresting, undefined);
});

test("ClockCheck: uses the median of the servers' clocks, so that one wrong server does no harm", async () => {
  const clock = new FakeClock();
  const check = new ClockCheck(clock);
  let dates: (string | undefined)[] = [];
  const outbound = check.watch({
    async get() {
      const date = dates.shift();
      const headers = new Headers(date === undefined ? {} : { date });
      return { status: 200, headers, bytes: new Uint8Array(0), finalUrl: "" };
    },
    open: () => Promise.reject(new Error("not implemented")),
  } as never);
  const ask = async (...secondsAhead: (number | undefined)[]) => {
    dates = secondsAhead.map((ahead) =>
      ahead === undefined ? undefined : new Date(1000 * (clock.unixSeconds() + ahead)).toUTCString(),
    );
    while (dates.length > 0) await outbound.get("http://x/", {} as never);
  };
  await ask(undefined);
  assert.equal(check.row(), undefined);
  await ask(1, 86_400, 0);
  assert.equal(check.row()?.level, "ok");
  await ask(60, 61, 62, 60);
  assert.equal(check.row()?.level, "warn");
  assert.match(check.row()!.text, /60 s behind/);
  await ask(-500, -500, -500, -500, -500, -500);
  assert.equal(check.row()?.level, "fail");
  assert.match(check.row()!.text, /500 s ahead/);
});

test("IncomingCount: only a connection from outside of the own networks proves that the port is reachable", () => {
  const count = new IncomingCount(() => [
    { host: "198.51.100.2", bits: 24 },
    { host: "2001:db8:5::2", bits: 64 },
  ]);
  assert.match(count.row(8621, false).advice!, /port 8621/);
  count.connected("192.168.1.7");
  assert.equal(count.row(8621, false).level, "note");
  assert.match(count.row(8621, false).text, /1 connection from this network/);
  assert.equal(count.row(8621, true).advice, undefined);
  // Public addresses of this machine and of its neighbors.
  for (const host of ["198.51.100.2", "198.51.100.7", "2001:db8:5::9"]) count.connected(host);
  assert.equal(count.row(8621, false).level, "note");
  assert.match(count.row(8621, false).text, /4 connections from this network/);
  count.connected("8.8.8.8");
  assert.equal(count.row(8621, false).level, "ok");
  assert.match(count.row(8621, false).text, /: 1 connection from the Internet/);
});
