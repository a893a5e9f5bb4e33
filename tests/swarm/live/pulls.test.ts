import assert from "node:assert/strict";
import { test } from "node:test";
import { PULL_TIMEOUT_MS } from "../../../src/swarm/live/limits.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

/** The only holder of a piece is asked for its chunks, and sends `answers` of them in time: how often each other one is
 * asked for within a second after that. */
function askedAgain(answers: number): number[] {
  const swarm = new Scripted();
  const only = swarm.holder(100);
  swarm.pass(100);
  swarm.say(only, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.say(only, { kind: "header", isAnswer: false, header: header(101) });
  const asked = () =>
    swarm.told("request", only).flatMap(({ chunks }) => chunks.filter(({ seq }) => seq === 101));
  const wait = (ms: number) => {
    for (let waited = 0; waited < ms; waited += 25) {
      swarm.tellWindow(only, 101);
      swarm.pass(25);
    }
  };
  for (let i = 0; i < 60 && asked().length < STRIPES; i++) wait(25);
  assert.equal(asked().length, STRIPES);
  wait(PULL_TIMEOUT_MS - 150);
  for (let stripe = 0; stripe < answers; stripe++) swarm.say(only, { ...chunk(101, stripe), isLate: true });
  wait(1_000);
  const others = Array.from({ length: STRIPES - answers }, (_, i) => answers + i);
  return others.map((other) => asked().filter(({ stripe }) => stripe === other).length - 1);
}

test("Pulls asks who sends one after another again for what did not come in time: it may be the only one who has it", () => {
  const again = askedAgain(2);
  assert.ok(
    again.every((times) => times > 0),
    `${again}`,
  );
});

test("Pulls lets who sends nothing of what it was asked for be", () => {
  assert.deepEqual(askedAgain(0), [0, 0, 0, 0]);
});
