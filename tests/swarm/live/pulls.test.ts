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

test("Pulls learns that a stripe always takes its time, from copies that the parent sends after those that were pulled", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.say(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 101 });
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.say(parent, chunk(100, stripe));
  const holder = swarm.holder(100);
  const late = 2;
  /** The pieces of which that stripe was pulled. */
  const pulled: number[] = [];
  for (let seq = 101; seq < 200; seq++) {
    swarm.say(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++)
      if (stripe !== late) swarm.say(parent, chunk(seq, stripe));
    // This one comes four pieces later than the others.
    if (seq >= 105) swarm.say(parent, chunk(seq - 4, late));
    for (const each of [parent, holder]) swarm.tellWindow(each, seq);
    for (let i = 0; i < 5; i++) {
      swarm.pass(25);
      for (const other of [parent, holder]) {
        const asked = swarm.told("request", other).flatMap(({ chunks }) => chunks);
        for (const { seq: wanted } of asked) {
          if (pulled.includes(wanted)) continue;
          pulled.push(wanted);
          swarm.say(other, { ...chunk(wanted, late), isLate: true });
        }
      }
    }
  }
  assert.ok(pulled.length > 0);
  assert.ok(Math.max(...pulled) < 190, `${pulled}`);
});

test("Pulls asks another at once when one says that it is busy", () => {
  const swarm = new Scripted();
  const holders = [swarm.holder(100), swarm.holder(100)];
  swarm.pass(500);
  const askedOf = (connection: number) => swarm.told("request", connection).flatMap(({ chunks }) => chunks);
  const busy = holders.find((holder) => askedOf(holder).length > 0)!;
  const other = holders.find((holder) => holder !== busy)!;
  const { seq, stripe } = askedOf(busy)[0]!;
  const isAsked = () => askedOf(other).some((chunk) => chunk.seq === seq && chunk.stripe === stripe);
  assert.equal(isAsked(), false);
  swarm.say(busy, { kind: "lacking", epoch: 1, chunks: [{ seq, stripe, reason: "busy" }], holders: [] });
  assert.equal(isAsked(), true);
});

test("Pulls does not wait for ever for a parent to be found: one after another may say no", () => {
  const swarm = new Scripted();
  const holders = Array.from({ length: 2 * STRIPES }, () => swarm.holder(100));
  const pulled = new Set<number>();
  let refused = 0;
  for (let waited = 0; waited < 1_000; waited += 25) {
    swarm.pass(25);
    const asked = swarm.told("subscribe");
    for (const { stripes } of asked.slice(refused)) {
      const no = { kind: "refused", stripes, reason: "full", retryMs: 0, candidates: [] } as const;
      for (const holder of holders) swarm.say(holder, no);
    }
    refused = asked.length;
    for (const holder of holders) {
      for (const { seq, stripe } of swarm.told("request", holder).flatMap(({ chunks }) => chunks)) {
        if (pulled.has(STRIPES * seq + stripe)) continue;
        pulled.add(STRIPES * seq + stripe);
        swarm.say(holder, { ...chunk(seq, stripe), isLate: true });
      }
    }
    if (waited % 125 > 0) continue;
    const seq = 101 + waited / 125;
    swarm.say(holders[0]!, { kind: "header", isAnswer: false, header: header(seq) });
    for (const holder of holders) swarm.tellWindow(holder, seq);
  }
  assert.ok(refused > 10);
  assert.ok(pulled.has(STRIPES * 104), `${[...pulled]}`);
});
