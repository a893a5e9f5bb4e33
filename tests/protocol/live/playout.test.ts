import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

test("Playout starts at a later random access piece that is complete first, and cancels its earlier requests", () => {
  const swarm = new Scripted();
  const holder = swarm.holder(100);
  swarm.pass(750);
  const asked = swarm.sent("request", holder).flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  assert.ok(asked.length > 0 && asked.every((seq) => seq === 100), `${asked}`);

  const whole = (seq: number, more = {}) => {
    swarm.receive(holder, { kind: "header", isAnswer: false, header: header(seq, more) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(holder, chunk(seq, stripe));
    return swarm.of("piece").map((piece) => piece.header.value.seq);
  };
  assert.deepEqual(whole(101, { randomAccessOffset: undefined }), []);
  assert.deepEqual(whole(102), [102]);
  swarm.pass(100);
  const cancelled = swarm.sent("cancel", holder).flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  assert.ok(cancelled.includes(100));
  assert.deepEqual(swarm.of("skip"), []);
});
