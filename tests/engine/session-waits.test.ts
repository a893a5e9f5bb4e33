import assert from "node:assert/strict";
import { test } from "node:test";
import type { HoldUp, HoldUpCode } from "../../src/engine/diagnosis/contract.ts";
import { SessionWaits } from "../../src/engine/session-waits.ts";
import { FakeClock } from "./fake-clock.ts";

const because = (code: HoldUpCode): HoldUp => ({ code, sentence: `${code}.`, numbers: {} });

function house() {
  const clock = new FakeClock();
  const waits = new SessionWaits(clock);
  let end = () => {};
  const wait = () => {
    void waits.during(() => new Promise<void>((resolve) => (end = resolve)));
  };
  const told = (code: HoldUpCode) => waits.holdUp(clock.now(), () => because(code))?.code;
  const over = async () => {
    end();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, waits, wait, told, over };
}

test("SessionWaits: a short wait is nobody's business, a longer one is explained", async () => {
  const { clock, wait, told } = house();
  assert.equal(told("choked"), undefined);
  wait();
  await clock.advance(1_400);
  assert.equal(told("choked"), undefined);
  await clock.advance(200);
  assert.equal(told("choked"), "choked");
});

test("SessionWaits: what is told does not flap, nor go away before it is read", async () => {
  const { clock, wait, told, over } = house();
  wait();
  await clock.advance(2_000);
  assert.equal(told("choked"), "choked");
  await clock.advance(1_000);
  assert.equal(told("slow_peers"), "choked");
  await clock.advance(2_100);
  assert.equal(told("slow_peers"), "slow_peers");
  await over();
  await clock.advance(2_000);
  assert.equal(told("no_peers"), "slow_peers");
  await clock.advance(1_100);
  assert.equal(told("no_peers"), undefined);
});

test("SessionWaits: a player that asks for nothing is told of, after a while", async () => {
  const { clock, waits } = house();
  const began = clock.now();
  await clock.advance(9_000);
  assert.equal(
    waits.holdUp(began, () => because("choked")),
    undefined,
  );
  await clock.advance(3_000);
  const holdUp = waits.holdUp(began, () => because("choked"));
  assert.equal(holdUp?.code, "player");
  assert.match(holdUp.sentence, /asked for nothing for 12 s/);
});

test("SessionWaits: a live edge that stands still is waited for, though each answer comes at once", async () => {
  const { clock, waits } = house();
  const heardAt = clock.now();
  const waited: number[] = [];
  const told = (lastUse = clock.now()) =>
    waits.holdUp(
      lastUse,
      (waitingMs) => {
        waited.push(waitingMs);
        return because("source");
      },
      heardAt,
    )?.code;
  await clock.advance(3_900);
  assert.equal(told(), undefined);
  await clock.advance(200);
  assert.deepEqual([told(), waited], ["source", [4_100]]);
  // Who is paused does not wait.
  const paused = clock.now();
  await clock.advance(13_000);
  assert.equal(told(paused), "player");
});
