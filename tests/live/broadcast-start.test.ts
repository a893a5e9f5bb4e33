import assert from "node:assert/strict";
import { test } from "node:test";
import { takeoverStart } from "../../src/live/broadcast/broadcast-start.ts";
import type { SourceState } from "../../src/live/broadcast/identity-state.ts";
import { seededRandom } from "../seeded-random.ts";

const NOW_MS = 1_700_000_000_500;
const NOW_S = 1_700_000_000;
const random = seededRandom(7);

function state(epoch: number, timestampMs: number): SourceState {
  return { epoch, seq: 9, timestampMs, segment: 4, headerHash: new Uint8Array(20).fill(1), reservedSeq: 0 };
}

test("takeoverStart: a new epoch, later than all known ones, with a valid header", () => {
  const rows: readonly [seen: number | undefined, state: number | undefined][] = [
    [undefined, undefined],
    [NOW_S - 3600, undefined],
    [NOW_S - 3600, NOW_S - 1800],
    [NOW_S - 2, NOW_S - 3600],
    [NOW_S - 1, undefined],
    [NOW_S, undefined],
    [NOW_S + 5, NOW_S + 7],
    [undefined, NOW_S - 1],
  ];
  for (const [seenEpoch, stateEpoch] of rows) {
    for (let i = 0; i < 50; i++) {
      const start = takeoverStart({
        seen: seenEpoch === undefined ? undefined : { epoch: seenEpoch, timestampMs: NOW_MS, segment: 70 },
        state: stateEpoch === undefined ? undefined : state(stateEpoch, NOW_MS),
        nowMs: NOW_MS,
        random,
      });
      assert.ok(start.epoch > (seenEpoch ?? 0) && start.epoch > (stateEpoch ?? 0));
      assert.ok(start.epoch > NOW_S - 8, "viewers with a state of an hour ago follow it all the same");
      assert.ok(start.leastTimestampMs >= start.epoch * 1000);
      assert.deepEqual(start.previousHash, new Uint8Array(20));
      assert.equal(start.firstSegment, seenEpoch === undefined ? undefined : 71);
    }
  }
});

test("takeoverStart: two in the same second rarely choose the same epoch", () => {
  const seen = { epoch: NOW_S - 600, timestampMs: NOW_MS, segment: 1 };
  const draw = () => takeoverStart({ seen, state: undefined, nowMs: NOW_MS, random }).epoch;
  const drawn = Array.from({ length: 1001 }, draw);
  const same = drawn.filter((epoch, i) => epoch === drawn[i + 1]).length;
  assert.ok(same > 60 && same < 200, `${same} of 1000`);
});

test("takeoverStart: timestamps continue from the newest piece, even if its clock is ahead of ours", () => {
  const seen = { epoch: NOW_S - 600, timestampMs: NOW_MS + 120_000, segment: 1 };
  const start = takeoverStart({ seen, state: undefined, nowMs: NOW_MS, random });
  assert.equal(start.leastTimestampMs, NOW_MS + 120_000);
});

test("takeoverStart: a state from a clock that was far ahead does not lead to future timestamps", () => {
  const start = takeoverStart({
    seen: undefined,
    state: state(NOW_S + 86_400, NOW_MS + 86_400_000),
    nowMs: NOW_MS,
    random,
  });
  assert.ok(start.epoch <= NOW_S);
});
