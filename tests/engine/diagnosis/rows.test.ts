import assert from "node:assert/strict";
import { test } from "node:test";
import type { Transfer } from "../../../src/engine/contract.ts";
import { ClockCheck } from "../../../src/engine/diagnosis/clock-check.ts";
import { findingRows } from "../../../src/engine/diagnosis/finding-rows.ts";
import { diagnoseStream } from "../../../src/engine/diagnosis/stream-diagnosis.ts";
import { IncomingCount } from "../../../src/engine/reach/incoming.ts";
import type { PeerFigures, PeerOrigin } from "../../../src/swarm/contract.ts";
import { NO_FIGURES } from "../../../src/swarm/figures.ts";
import { FakeClock } from "../fake-clock.ts";

const peer = (origin: PeerOrigin, flags = "d", bytesPerSecondDown = 100_000): PeerFigures => ({
  address: { host: "198.51.100.7", port: 1 },
  origin,
  client: "someone",
  bytesPerSecondDown,
  bytesPerSecondUp: 0,
  progress: 1,
  flags,
});

test("findingRows: who is connected, by where they came from, and how trackers do", () => {
  assert.equal(findingRows([])[0]!.level, "ok");
  assert.equal(findingRows([NO_FIGURES])[0]!.level, "fail");
  const trackers = { ...NO_FIGURES.trackers, known: 3, answered: 1, failing: 2 };
  const [peers, told] = findingRows([
    { ...NO_FIGURES, trackers, peers: [peer("dht"), peer("tracker"), peer("dht")] },
  ]);
  assert.equal(peers!.text, "3 are connected: 2 from the DHT, 1 from trackers.");
  assert.equal(told!.level, "ok");
  const dead = { ...trackers, answered: 0, failing: 3, problem: "no route" };
  const [, failing] = findingRows([{ ...NO_FIGURES, trackers: dead, peers: [peer("lsd")] }]);
  assert.equal(failing!.level, "warn");
  assert.match(failing!.text, /no route/);
});

test("diagnoseStream: says of each peer what stands in its way", () => {
  const peers = [
    peer("dht"),
    peer("pex", "D", 0),
    peer("pex", "ds", 0),
    peer("dht", "d", 2_000),
    peer("dht", "u", 0),
  ];
  const transfer = { infohash: "00".repeat(20), name: "film", figures: { ...NO_FIGURES, peers } };
  const { peers: told, origins } = diagnoseStream(transfer as unknown as Transfer, []);
  assert.deepEqual(origins, { dht: 3, pex: 2 });
  const [fast, choking, snubbing, slow, uninteresting] = told.map((each) => each.slow);
  assert.equal(fast, undefined);
  assert.match(choking!, /chokes us/);
  assert.match(snubbing!, /has not sent for a while/);
  assert.match(slow!, /slow or far/);
  assert.equal(uninteresting, undefined);
});

test("ClockCheck: the middle of what servers say counts, so that one of them may be wrong", async () => {
  const clock = new FakeClock();
  const check = new ClockCheck(clock);
  let dates: (string | undefined)[] = [];
  const outbound = check.watch({
    async get() {
      const date = dates.shift();
      const headers = new Headers(date === undefined ? {} : { date });
      return { status: 200, headers, bytes: new Uint8Array(0), finalUrl: "" };
    },
    open: () => Promise.reject(new Error("not here")),
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

test("IncomingCount: only who comes from the Internet proves that others reach us", () => {
  const count = new IncomingCount();
  assert.match(count.row(8621, false).advice!, /port 8621/);
  count.called("192.168.1.7");
  assert.equal(count.row(8621, false).level, "note");
  assert.match(count.row(8621, false).text, /1 from this network/);
  assert.equal(count.row(8621, true).advice, undefined);
  count.called("198.51.100.7");
  count.called("8.8.8.8");
  assert.equal(count.row(8621, false).level, "ok");
});
