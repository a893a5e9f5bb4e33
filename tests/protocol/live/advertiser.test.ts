import assert from "node:assert/strict";
import { test } from "node:test";
import { windowHas } from "../../../src/wire/live/window.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

/** The pieces in `[firstSeq, end)` of which the last WIN shows any chunk. */
function shown(swarm: Scripted, firstSeq: number, end: number): number[] {
  const { window } = swarm.sent("window").at(-1)!;
  const seqs = Array.from({ length: end - firstSeq }, (_, i) => firstSeq + i);
  return seqs.filter((seq) =>
    Array.from({ length: STRIPES }, (_, stripe) => windowHas(window, seq, stripe)).includes(true),
  );
}

test("Advertiser of a newcomer shows no piece from before its start, which other peers would pull without success", () => {
  const swarm = new Scripted();
  // The only possible start is the newest piece, seven after the first subscribed one.
  const holder = swarm.holder(100);
  for (let seq = 93; seq < 100; seq++) {
    const known = header(seq, { randomAccessOffset: undefined });
    swarm.receive(holder, { kind: "header", isAnswer: true, header: known });
  }
  swarm.pass(500);
  assert.deepEqual(shown(swarm, 80, 101), []);
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(holder, chunk(100, stripe));
  swarm.pass(500);
  assert.deepEqual(shown(swarm, 80, 102), [100]);
});
