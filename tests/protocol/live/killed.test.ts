import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBelow } from "../../../src/base/random.ts";
import { seededRandom } from "../../seeded-random.ts";
import { Lab, type LabNode } from "./lab.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

const RATE = 24_064;

test("LiveSwarm: thirty engines on one machine, half of them killed each minute: the others miss nothing", () => {
  const random = seededRandom(1);
  const lab = new Lab(1);
  const host = "127.0.0.1";
  const source = lab.add({ role: "source", host, port: 1_000, upload: 8 * RATE });
  lab.produce(source, 3_000);
  const alive: LabNode[] = [];
  const all: LabNode[] = [];
  const join = () => {
    const node = lab.add({ host, port: 2_000 + all.length, upload: 2 * RATE });
    const tracker = () => [source.address, ...alive.map(({ address }) => address)];
    node.tracker = tracker;
    node.handle({ kind: "found", addresses: tracker() });
    alive.push(node);
    all.push(node);
  };
  for (let i = 0; i < 29; i++) {
    join();
    lab.produce(source, 250);
  }
  const [from, sent] = [lab.seq, source.chunksSent];
  for (let ms = 0; ms < 60_000; ms += 4_000) {
    lab.kill(alive.splice(randomBelow(random, alive.length), 1)[0]!);
    lab.produce(source, 500);
    join();
    lab.produce(source, 3_500);
  }
  for (const node of all) {
    const seqs = node.played.map(({ seq }) => seq);
    assert.ok(seqs.length > 0 && node.skipped.length === 0, `${node.address.port} skipped ${node.skipped}`);
    assert.deepEqual(
      seqs,
      seqs.map((_, i) => seqs[0]! + i),
    );
    assert.deepEqual(
      node.outputs.filter(({ kind }) => kind === "banned" || kind === "forked"),
      [],
    );
  }
  for (const node of alive) assert.ok(node.played.at(-1)!.seq >= lab.seq - 4);
  const copies = (source.chunksSent - sent) / (16 * (lab.seq - from));
  assert.ok(copies <= 3, `${copies} copies`);
});

test("LiveSwarm sends UNSUB to a peer that pushes unwanted chunks, before its strikes cost the connection", () => {
  const swarm = new Scripted();
  const [parent, other] = [swarm.holder(100), swarm.peer(undefined)];
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const push = (seq: number, from: number) => {
    swarm.receive(from, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(from, chunk(seq, stripe));
  };
  const ended = () => swarm.sent("unsubscribe", other).reduce((mask, { stripes }) => mask | stripes, 0);
  for (let seq = 101; seq < 107; seq++) {
    push(seq, parent);
    push(seq, other);
    swarm.pass(125);
  }
  assert.equal(swarm.sent("unsubscribe", other).length, 6);
  assert.ok(ended() > 0);
  assert.equal(swarm.of("banned").length, 0);
});
