import assert from "node:assert/strict";
import { test } from "node:test";
import { infohashOf } from "../../../src/base/ids.ts";
import type { Successor } from "../../../src/wire/live/successor.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

const SINCE = 110 * 125;
const NEXT: Successor = {
  publicKey: new Uint8Array(32),
  infohash: infohashOf(new Uint8Array(20).fill(1)),
  sinceMs: SINCE,
};

/** A viewer; a record whose first byte is 1 is valid. */
function viewer(): { swarm: Scripted; parent: number; send: (seq: number) => void } {
  const swarm = new Scripted({ successorOf: (record) => (record[0] === 1 ? NEXT : undefined) });
  const parent = swarm.holder(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  swarm.pass(300);
  const send = (seq: number) => {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
  };
  for (let seq = 100; seq < 105; seq++) send(seq);
  return { swarm, parent, send };
}

function tell(
  swarm: Scripted,
  from: number,
  number: number,
  mark: number | undefined,
  timestampMs = SINCE,
): void {
  const value = {
    kind: "stat",
    epoch: 1,
    number,
    timestampMs,
    isEnd: false,
    relays: [],
    trackers: [],
  } as const;
  const successor = mark === undefined ? {} : { successor: Uint8Array.of(mark) };
  swarm.receive(from, {
    kind: "stat",
    stat: { value: { ...value, ...successor }, bytes: Uint8Array.of(1, number) },
  });
}

test("LiveSwarm plays nothing that the old key signs from the time of a successor record on, and bans no peer", () => {
  const { swarm, parent, send } = viewer();
  const child = swarm.peer(undefined);
  tell(swarm, parent, 1, 1);
  for (let seq = 105; seq < 400; seq++) {
    send(seq);
    swarm.pass(125);
  }
  const played = swarm.of("piece").map(({ header: { value } }) => value.seq);
  assert.equal(played.at(-1), 109);
  assert.deepEqual(
    swarm.of("moved").map(({ successor }) => successor),
    [NEXT],
  );
  assert.deepEqual(swarm.of("banned"), []);
  assert.equal(swarm.sent("stat", child).length, 1, "the record is forwarded");
});

test("LiveSwarm ignores an invalid successor record, and a second one", () => {
  const { swarm, parent, send } = viewer();
  tell(swarm, parent, 1, 2);
  assert.deepEqual(swarm.of("moved"), []);
  send(105);
  assert.equal(swarm.of("piece").at(-1)?.header.value.seq, 105);
  tell(swarm, parent, 2, 1);
  tell(swarm, parent, 3, 1);
  assert.equal(swarm.of("moved").length, 1);
});

test("LiveSwarm forwards no STAT of the old key after its revocation", () => {
  const { swarm, parent } = viewer();
  const child = swarm.peer(undefined);
  tell(swarm, parent, 1, 1);
  swarm.pass(1_100);
  tell(swarm, parent, 2, undefined, SINCE + 1);
  swarm.pass(1_100);
  assert.equal(swarm.sent("stat", child).length, 1);
});

test("LiveSwarm follows a valid successor record that was found outside the swarm", () => {
  const { swarm, send } = viewer();
  swarm.input({ kind: "successor", record: Uint8Array.of(2) });
  assert.deepEqual(swarm.of("moved"), []);
  swarm.input({ kind: "successor", record: Uint8Array.of(1) });
  assert.equal(swarm.of("moved").length, 1);
  for (let seq = 105; seq < 120; seq++) {
    send(seq);
    swarm.pass(125);
  }
  assert.equal(swarm.of("piece").at(-1)?.header.value.seq, 109);
});
