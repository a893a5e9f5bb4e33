import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { instant } from "../../src/base/time.ts";
import { LiveAddresses } from "../../src/live/live-addresses.ts";
import type { LiveDriverOptions } from "../../src/live/live-setup.ts";
import { liveSetup } from "../../src/live/live-setup.ts";
import { keepingLog, someBytes } from "../engine/parts.ts";
import { PieceMaker, someStream } from "./driver-parts.ts";

const HOUR_MS = 3_600_000;

test("liveSetup: the time of day never goes back, and follows the clock after a sleep", () => {
  const { file } = someStream();
  const machine = { now: 5_000, unixSeconds: 1_700_000_000 };
  const clock = { now: () => machine.now, unixSeconds: () => machine.unixSeconds };
  const parts = { infohash: file.infohash, info: file.info, role: "viewer", runtime: { ...runtime, clock } };
  const setup = liveSetup(
    { ...parts, peerId: someBytes(20), log: keepingLog() } as unknown as LiveDriverOptions,
    new LiveAddresses(undefined),
  );
  const unixMs = () => setup.unixMs(instant(machine.now));
  assert.equal(unixMs(), 1_700_000_000_000);
  machine.now += 60_000;
  machine.unixSeconds -= 3_600;
  assert.equal(unixMs(), 1_700_000_060_000);
  machine.unixSeconds += 2 * 3_600;
  assert.equal(unixMs(), 1_700_003_600_000);
});

test("liveSetup: warns once of a signed stream that is ahead of this machine's clock", () => {
  const stream = someStream();
  const { file } = stream;
  const log = keepingLog();
  const reported: number[] = [];
  const ahead = (minutes: number) => void reported.push(minutes);
  const parts = { infohash: file.infohash, info: file.info, role: "viewer", runtime, log, ahead };
  const peerId = someBytes(20);
  const setup = liveSetup({ ...parts, peerId } as unknown as LiveDriverOptions, new LiveAddresses(undefined));
  const maker = new PieceMaker(stream);
  assert.equal(setup.isSigned(maker.make(someBytes(100)).header), true);
  const { header: forged } = new PieceMaker(someStream({}, 2)).make(someBytes(100), Date.now() + HOUR_MS);
  assert.equal(setup.isSigned(forged), false);
  assert.deepEqual(log.warnings, []);
  for (let i = 0; i < 3; i++)
    assert.equal(setup.isSigned(maker.make(someBytes(100), Date.now() + HOUR_MS).header), true);
  assert.equal(log.warnings.length, 1);
  assert.match(log.warnings[0]!, /clock/);
  assert.deepEqual(reported, [0, 60, 60, 60]);
});
