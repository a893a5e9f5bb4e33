import assert from "node:assert/strict";
import { test } from "node:test";
import { windowHas } from "../../../src/wire/live-window.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

/** The pieces from `firstSeq` to before `end` of which the last WIN shows any chunk. */
function shown(swarm: Scripted, firstSeq: number, end: number): number[] {
  const { window } = swarm.told("window").at(-1)!;
  const seqs = Array.from({ length: end - firstSeq }, (_, i) => firstSeq + i);
  return seqs.filter((seq) =>
    Array.from({ length: STRIPES }, (_, stripe) => windowHas(window, seq, stripe)).includes(true),
  );
}

test("News of a newcomer shows nothing from before its start: others would pull what is not here", () => {
  const swarm = new Scripted();
  // The one place to begin is the newest piece, seven after the first that it subscribes from.
  const holder = swarm.holder(100);
  for (let seq = 93; seq < 100; seq++) {
    const known = header(seq, { randomAccessOffset: undefined });
    swarm.say(holder, { kind: "header", isAnswer: true, header: known });
  }
  swarm.pass(500);
  assert.deepEqual(shown(swarm, 80, 101), []);
  for (let stripe = 0; stripe < STRIPES; stripe++) swarm.say(holder, chunk(100, stripe));
  swarm.pass(500);
  assert.deepEqual(shown(swarm, 80, 102), [100]);
});
