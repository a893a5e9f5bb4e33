import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

test("a viewer that sends pieces again that were played long ago is banned after some of them", () => {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(700);
  for (let seq = 100; seq < 180; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
    swarm.receiveWindow(parent, seq);
    swarm.pass(125);
  }
  const suspect = swarm.holder(179);
  for (let seq = 110; seq < 118; seq++) swarm.receive(suspect, chunk(seq, 0));
  assert.equal(swarm.of("banned").length, 0);
  for (let seq = 118; seq < 120; seq++) swarm.receive(suspect, chunk(seq, 0));
  assert.deepEqual(
    swarm.of("banned").map(({ reason }) => reason),
    ["outdated chunk"],
  );
});
