import assert from "node:assert/strict";
import { test } from "node:test";
import type { SignedStat } from "../../../src/protocol/live/messages.ts";
import type { StatMessage } from "../../../src/wire/live/stat.ts";
import { ABOUT, header, Scripted } from "./scripted.ts";

function stat(number: number, more: Partial<StatMessage> = {}, isSigned = true): SignedStat {
  return {
    bytes: new Uint8Array([isSigned ? 1 : 0, number]),
    value: {
      kind: "stat",
      epoch: 1,
      number,
      timestampMs: 1,
      isEnd: false,
      relays: [],
      trackers: [],
      ...more,
    },
  };
}

test("LiveSwarm forwards a STAT once to all peers but its sender, and sends it to new peers", () => {
  const swarm = new Scripted();
  const [from, ...others] = [swarm.peer(undefined), swarm.peer(undefined), swarm.peer(undefined)];
  swarm.receive(from, { kind: "stat", stat: stat(1, { bytesPerSecond: 7 }) });
  for (const other of others) swarm.receive(other, { kind: "stat", stat: stat(1, { bytesPerSecond: 7 }) });
  assert.deepEqual(
    swarm.of("stat").map(({ stat: { bytesPerSecond } }) => bytesPerSecond),
    [7],
  );
  assert.equal(swarm.sent("stat", from).length, 0);
  for (const other of others) assert.equal(swarm.sent("stat", other).length, 1);
  assert.equal(swarm.sent("stat", swarm.peer(undefined)).length, 1);
});

test("LiveSwarm forwards at most one STAT a second, the newest", () => {
  const swarm = new Scripted({ about: { ...ABOUT, role: "source", digest: 9 } });
  const other = swarm.peer(undefined);
  for (let number = 1; number <= 5; number++) swarm.input({ kind: "stat", stat: stat(number) });
  swarm.pass(900);
  const numbers = () => swarm.sent("stat", other).map((word) => word.stat.value.number);
  assert.deepEqual(numbers(), [1]);
  swarm.pass(200);
  assert.deepEqual(numbers(), [1, 5]);
});

test("LiveSwarm bans the sender of a STAT with a wrong signature, and ignores old ones", () => {
  const swarm = new Scripted();
  const [honest, liar] = [swarm.peer(undefined), swarm.peer(undefined)];
  swarm.receive(honest, { kind: "stat", stat: stat(5) });
  swarm.receive(liar, { kind: "stat", stat: stat(4, {}, false) });
  assert.equal(swarm.of("banned").length, 0);
  swarm.receive(liar, { kind: "stat", stat: stat(6, {}, false) });
  assert.equal(swarm.of("banned").length, 1);
  assert.equal(swarm.of("stat").length, 1);
});

test("LiveSwarm considers a stream ended when a STAT says so, unless there are newer pieces", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(200);
  const isEnding = () => {
    swarm.outputs.length = 0;
    swarm.pass(30_000);
    return swarm.of("find").length === 0;
  };
  assert.equal(isEnding(), false);
  const again = swarm.holder(100);
  swarm.receive(again, { kind: "stat", stat: stat(1, { isEnd: true, timestampMs: 100 * 125 - 1 }) });
  assert.equal(isEnding(), false);
  const third = swarm.holder(100);
  swarm.receive(third, { kind: "stat", stat: stat(2, { isEnd: true, timestampMs: 100 * 125 }) });
  assert.equal(isEnding(), true);
  assert.ok(parent < third);
  const fourth = swarm.holder(101);
  swarm.receive(fourth, { kind: "header", isAnswer: false, header: header(101) });
  assert.equal(isEnding(), false);
});
