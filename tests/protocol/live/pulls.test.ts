import assert from "node:assert/strict";
import { test } from "node:test";
import { PULL_TIMEOUT_MS } from "../../../src/protocol/live/limits.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

/** The only holder of a piece is asked for its chunks and sends `answers` of them in time. Returns how
 * often each of the others is requested within a second after that. */
function askedAgain(answers: number): number[] {
  const swarm = new Scripted();
  const only = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(only, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.receive(only, { kind: "header", isAnswer: false, header: header(101) });
  const asked = () =>
    swarm.sent("request", only).flatMap(({ chunks }) => chunks.filter(({ seq }) => seq === 101));
  const wait = (ms: number) => {
    for (let waited = 0; waited < ms; waited += 25) {
      swarm.receiveWindow(only, 101);
      swarm.pass(25);
    }
  };
  for (let i = 0; i < 60 && asked().length < STRIPES; i++) wait(25);
  assert.equal(asked().length, STRIPES);
  wait(PULL_TIMEOUT_MS - 150);
  for (let stripe = 0; stripe < answers; stripe++)
    swarm.receive(only, { ...chunk(101, stripe), isLate: true });
  wait(1_000);
  const others = Array.from({ length: STRIPES - answers }, (_, i) => answers + i);
  return others.map((other) => asked().filter(({ stripe }) => stripe === other).length - 1);
}

test("Pulls asks a slow but working peer again, because it may be the only holder", () => {
  const again = askedAgain(2);
  assert.ok(
    again.every((times) => times > 0),
    `${again}`,
  );
});

test("Pulls does not ask a peer again that sends nothing", () => {
  assert.deepEqual(askedAgain(0), [0, 0, 0, 0]);
});

test("Pulls learns that a stripe is usually late from copies that the parent sends after the pulled ones", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 101 });
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(100, stripe));
  const holder = swarm.holder(100);
  const late = 2;
  /** The pieces of which that stripe was pulled. */
  const pulled: number[] = [];
  for (let seq = 101; seq < 200; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++)
      if (stripe !== late) swarm.receive(parent, chunk(seq, stripe));
    // This stripe arrives four pieces later than the others.
    if (seq >= 105) swarm.receive(parent, chunk(seq - 4, late));
    for (const each of [parent, holder]) swarm.receiveWindow(each, seq);
    for (let i = 0; i < 5; i++) {
      swarm.pass(25);
      for (const other of [parent, holder]) {
        const asked = swarm.sent("request", other).flatMap(({ chunks }) => chunks);
        for (const { seq: wanted } of asked) {
          if (pulled.includes(wanted)) continue;
          pulled.push(wanted);
          swarm.receive(other, { ...chunk(wanted, late), isLate: true });
        }
      }
    }
  }
  assert.ok(pulled.length > 0);
  assert.ok(Math.max(...pulled) < 190, `${pulled}`);
});

test("Pulls asks another peer at once after a NAK with the reason busy", () => {
  const swarm = new Scripted();
  const holders = [swarm.holder(100), swarm.holder(100)];
  swarm.pass(500);
  const askedOf = (connection: number) => swarm.sent("request", connection).flatMap(({ chunks }) => chunks);
  const busy = holders.find((holder) => askedOf(holder).length > 0)!;
  const other = holders.find((holder) => holder !== busy)!;
  const { seq, stripe } = askedOf(busy)[0]!;
  const isRequested = () => askedOf(other).some((chunk) => chunk.seq === seq && chunk.stripe === stripe);
  assert.equal(isRequested(), false);
  swarm.receive(busy, { kind: "lacking", epoch: 1, chunks: [{ seq, stripe, reason: "busy" }], holders: [] });
  assert.equal(isRequested(), true);
});

test("Pulls does not wait indefinitely for a parent while peers keep refusing", () => {
  const swarm = new Scripted();
  const holders = Array.from({ length: 2 * STRIPES }, () => swarm.holder(100));
  const pulled = new Set<number>();
  let refused = 0;
  for (let waited = 0; waited < 1_000; waited += 25) {
    swarm.pass(25);
    const asked = swarm.sent("subscribe");
    for (const { stripes } of asked.slice(refused)) {
      const no = { kind: "refused", stripes, reason: "full", retryMs: 0, candidates: [] } as const;
      for (const holder of holders) swarm.receive(holder, no);
    }
    refused = asked.length;
    for (const holder of holders) {
      for (const { seq, stripe } of swarm.sent("request", holder).flatMap(({ chunks }) => chunks)) {
        if (pulled.has(STRIPES * seq + stripe)) continue;
        pulled.add(STRIPES * seq + stripe);
        swarm.receive(holder, { ...chunk(seq, stripe), isLate: true });
      }
    }
    if (waited % 125 > 0) continue;
    const seq = 101 + waited / 125;
    swarm.receive(holders[0]!, { kind: "header", isAnswer: false, header: header(seq) });
    for (const holder of holders) swarm.receiveWindow(holder, seq);
  }
  assert.ok(refused > 10);
  assert.ok(pulled.has(STRIPES * 104), `${[...pulled]}`);
});
