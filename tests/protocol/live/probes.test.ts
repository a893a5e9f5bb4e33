import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

const SECONDS = 10;

/** Plays a stream that `parent` sends, while `suspect` claims all of it and answers requests as `answer` says. */
function play(answer: (swarm: Scripted, suspect: number, seq: number, stripe: number) => void) {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(700);
  const suspect = swarm.peer(header(100));
  let asked = 0;
  for (let seq = 101; seq < 101 + 8 * SECONDS; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
    swarm.receiveWindow(parent, seq);
    if (swarm.of("banned").length === 0) swarm.receiveWindow(suspect, seq);
    const requests = swarm.sent("request", suspect);
    for (const { chunks } of requests.slice(asked))
      for (const name of chunks) answer(swarm, suspect, name.seq, name.stripe);
    asked = requests.length;
    swarm.pass(125);
  }
  return { swarm, suspect, bans: swarm.of("banned").map(({ address, reason }) => [address.host, reason]) };
}

test("a viewer that claims chunks and sends none is banned, although its chunks are not needed", () => {
  const { bans, suspect } = play(() => {});
  assert.deepEqual(bans, [[`11.0.${suspect}.7`, "claims chunks and sends none"]]);
});

test("a viewer that answers once is not asked again", () => {
  const { bans, swarm, suspect } = play((to, from, seq, stripe) => to.receive(from, chunk(seq, stripe)));
  assert.deepEqual(bans, []);
  assert.equal(swarm.sent("request", suspect).length, 1);
});

test("a viewer without upload to spare is asked again later, and not banned", () => {
  const { bans, swarm, suspect } = play((to, from, seq, stripe) =>
    to.receive(from, {
      kind: "lacking",
      epoch: 1,
      chunks: [{ seq, stripe, reason: "busy" }],
      holders: [],
    }),
  );
  assert.deepEqual(bans, []);
  assert.equal(swarm.sent("request", suspect).length, 1);
});

test("a viewer that answers with a wrong chunk is banned", () => {
  const { bans } = play((to, from, seq, stripe) => to.receive(from, chunk(seq, stripe, false)));
  assert.deepEqual(
    bans.map(([, reason]) => reason),
    ["chunk hash mismatch"],
  );
});

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
