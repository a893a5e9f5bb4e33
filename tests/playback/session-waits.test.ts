import assert from "node:assert/strict";
import { test } from "node:test";
import type { Buffering, BufferingReason } from "../../src/playback/diagnosis/contract.ts";
import { SessionWaits } from "../../src/playback/session-waits.ts";
import { FakeClock } from "../engine/fake-clock.ts";

const because = (code: BufferingReason): Buffering => ({ code, sentence: `${code}.`, numbers: {} });

function waitingSession() {
  const clock = new FakeClock();
  const waits = new SessionWaits(clock);
  let end = () => {};
  const wait = () => {
    void waits.during(() => new Promise<void>((resolve) => (end = resolve)));
  };
  const reported = (code: BufferingReason) => waits.buffering(clock.now(), () => because(code))?.code;
  const over = async () => {
    end();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, waits, wait, reported, over };
}

test("SessionWaits: reports only waits of 1.5 s or more", async () => {
  const { clock, wait, reported } = waitingSession();
  assert.equal(reported("choked"), undefined);
  wait();
  await clock.advance(1_400);
  assert.equal(reported("choked"), undefined);
  await clock.advance(200);
  assert.equal(reported("choked"), "choked");
});

test("SessionWaits: a reported reason stays for 3 s", async () => {
  const { clock, wait, reported, over } = waitingSession();
  wait();
  await clock.advance(2_000);
  assert.equal(reported("choked"), "choked");
  await clock.advance(1_000);
  assert.equal(reported("slow_peers"), "choked");
  await clock.advance(2_100);
  assert.equal(reported("slow_peers"), "slow_peers");
  await over();
  await clock.advance(2_000);
  assert.equal(reported("no_peers"), "slow_peers");
  await clock.advance(1_100);
  assert.equal(reported("no_peers"), undefined);
});

test("SessionWaits: reports a player without requests after 10 s", async () => {
  const { clock, waits } = waitingSession();
  const began = clock.now();
  await clock.advance(9_000);
  assert.equal(
    waits.buffering(began, () => because("choked")),
    undefined,
  );
  await clock.advance(3_000);
  const buffering = waits.buffering(began, () => because("choked"));
  assert.equal(buffering?.code, "player");
  assert.match(buffering.sentence, /requested nothing for 12 s/);
});

test("SessionWaits: a silent live edge counts as waiting, although each response comes at once", async () => {
  const { clock, waits } = waitingSession();
  const heardAt = clock.now();
  const waited: number[] = [];
  const reported = (lastUse = clock.now()) =>
    waits.buffering(
      lastUse,
      (waitingMs) => {
        waited.push(waitingMs);
        return because("source");
      },
      heardAt,
    )?.code;
  await clock.advance(3_900);
  assert.equal(reported(), undefined);
  await clock.advance(200);
  assert.deepEqual([reported(), waited], ["source", [4_100]]);
  // A paused player does not wait.
  const paused = clock.now();
  await clock.advance(13_000);
  assert.equal(reported(paused), "player");
});
