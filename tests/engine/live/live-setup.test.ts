import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { instant } from "../../../src/base/time.ts";
import type { LiveDriverParts } from "../../../src/engine/live/live-driver.ts";
import { LivePlaces } from "../../../src/engine/live/live-places.ts";
import { liveSetup } from "../../../src/engine/live/live-setup.ts";
import { keepingLog, someBytes } from "../parts.ts";
import { PieceMaker, someStream } from "./driver-parts.ts";

const HOUR_MS = 3_600_000;

test("liveSetup: our time of day never goes back, and goes on where the machine has slept", () => {
  const { file } = someStream();
  const machine = { now: 5_000, unixSeconds: 1_700_000_000 };
  const clock = { now: () => machine.now, unixSeconds: () => machine.unixSeconds };
  const parts = { infohash: file.infohash, info: file.info, role: "viewer", runtime: { ...runtime, clock } };
  const setup = liveSetup(
    { ...parts, peerId: someBytes(20), log: keepingLog() } as unknown as LiveDriverParts,
    new LivePlaces(undefined),
  );
  const unixMs = () => setup.unixMs(instant(machine.now));
  assert.equal(unixMs(), 1_700_000_000_000);
  machine.now += 60_000;
  machine.unixSeconds -= 3_600;
  assert.equal(unixMs(), 1_700_000_060_000);
  machine.unixSeconds += 2 * 3_600;
  assert.equal(unixMs(), 1_700_003_600_000);
});

test("liveSetup: a stream from the future by this machine's clock is told once, if its source has signed it", () => {
  const stream = someStream();
  const { file } = stream;
  const log = keepingLog();
  const told: number[] = [];
  const ahead = (minutes: number) => void told.push(minutes);
  const parts = { infohash: file.infohash, info: file.info, role: "viewer", runtime, log, ahead };
  const peerId = someBytes(20);
  const setup = liveSetup({ ...parts, peerId } as unknown as LiveDriverParts, new LivePlaces(undefined));
  const maker = new PieceMaker(stream);
  assert.equal(setup.isSigned(maker.make(someBytes(100)).header), true);
  const { header: forged } = new PieceMaker(someStream({}, 2)).make(someBytes(100), Date.now() + HOUR_MS);
  assert.equal(setup.isSigned(forged), false);
  assert.deepEqual(log.warnings, []);
  for (let i = 0; i < 3; i++)
    assert.equal(setup.isSigned(maker.make(someBytes(100), Date.now() + HOUR_MS).header), true);
  assert.equal(log.warnings.length, 1);
  assert.match(log.warnings[0]!, /clock/);
  assert.deepEqual(told, [0, 60, 60, 60]);
});
