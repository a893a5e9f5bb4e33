import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_STRIKES } from "../../../src/protocol/live/limits.ts";
import type { LiveMessage } from "../../../src/protocol/live/messages.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

const HEAD = 120;

/** A viewer that has a head, and a second peer, whose messages are judged. */
function judged(): { readonly swarm: Scripted; readonly peer: number } {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 101 });
  for (let seq = 101; seq <= HEAD; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
  }
  return { swarm, peer: swarm.peer(undefined) };
}

const pushed = (...args: Parameters<typeof header>): LiveMessage => ({
  ...{ kind: "header", isAnswer: false },
  header: header(...args),
});
const one = [{ seq: HEAD, stripe: 0 }];

/** Live protocol: Trust, what a message costs its sender. */
const FAULTS: Record<string, LiveMessage> = {
  "an invalid header": pushed(HEAD + 1, {}, false),
  "an invalid header in answer to a request": {
    ...{ kind: "header", isAnswer: true },
    header: header(HEAD + 1, {}, false),
  },
  "an invalid STAT": {
    kind: "stat",
    stat: {
      value: { kind: "stat", epoch: 1, number: 1, timestampMs: 1, isEnd: false, relays: [], trackers: [] },
      bytes: new Uint8Array(84),
    },
  },
};
const USELESS: Record<string, LiveMessage> = {
  "a second HELLO": { kind: "hello", header: undefined },
  "copies of a header": pushed(HEAD),
  "a header whose time contradicts its number": pushed(HEAD + 2, { timestampMs: 1 }),
  "a header from the future": pushed(HEAD + 2, { timestampMs: 10_000_000_000 }),
  "a chunk of another epoch": { ...chunk(HEAD, 0), epoch: 2 },
  "a chunk far above the head": chunk(HEAD + 1_000, 0),
  "a chunk that is here already": chunk(HEAD, 0),
  "a request of another epoch": {
    ...{ kind: "request", epoch: 9 },
    chunks: one.map((each) => ({ ...each, withinMs: 500 })),
  },
};
const IGNORED: Record<string, LiveMessage> = {
  "a request for a chunk that is not here": {
    ...{ kind: "request", epoch: 1 },
    chunks: [{ seq: 1, stripe: 0, withinMs: 500 }],
  },
  "CANCEL of what was not asked": { kind: "cancel", epoch: 1, chunks: one },
  "NAK of what was not asked": {
    ...{ kind: "lacking", epoch: 1, holders: [] },
    chunks: [{ seq: HEAD, stripe: 0, reason: "busy" }],
  },
  "SUBOK of what was not asked": { kind: "subscribed", stripes: 1, epoch: 1, startSeq: 1 },
  "SUBNO of what was not asked": {
    ...{ kind: "refused", stripes: 1, reason: "full", retryMs: 0, candidates: [] },
  },
  "UNSUB of what was not granted": { kind: "unsubscribe", stripes: 1, reason: "moved" },
  "PONG with an unknown token": { kind: "pong", token: 7, clockMs: 0 },
};

/** How many of `count` messages the peer sends until its connection is closed; undefined if it stays. */
function sentUntilClosed(message: LiveMessage, count: number): number | undefined {
  const { swarm, peer } = judged();
  for (let i = 1; i <= count; i++) {
    swarm.receive(peer, message);
    if (swarm.of("close").some(({ connection }) => connection === peer)) return i;
  }
  return undefined;
}

test("a peer that sends an invalid header or STAT is disconnected at the first one", () => {
  for (const [what, message] of Object.entries(FAULTS)) assert.equal(sentUntilClosed(message, 1), 1, what);
});

test("an invalid header in HELLO is a fault as in HEADER, with and without a head", () => {
  const { swarm } = judged();
  const late = swarm.peer(header(HEAD + 1, {}, false));
  const alone = new Scripted();
  const first = alone.peer(header(HEAD, {}, false));
  assert.deepEqual([swarm.of("banned").length, alone.of("banned").length], [1, 1]);
  assert.equal(swarm.of("close").at(-1)?.connection, late);
  assert.equal(alone.of("close").at(-1)?.connection, first);
});

test("useless messages are tolerated up to the limit, and not processed", () => {
  for (const [what, message] of Object.entries(USELESS)) {
    const sent = sentUntilClosed(message, MAX_STRIKES + 3);
    assert.ok(sent !== undefined && sent > MAX_STRIKES, `${what}: closed after ${sent}`);
  }
});

test("messages that answer nothing, and requests for what is not here, cost nothing", () => {
  for (const [what, message] of Object.entries(IGNORED))
    assert.equal(sentUntilClosed(message, 2 * MAX_STRIKES), undefined, what);
});
