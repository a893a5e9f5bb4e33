import assert from "node:assert/strict";
import { test } from "node:test";
import {
  HEADER_BURST,
  HEADERS_PER_SECOND,
  MAX_BAN_MS,
  MAX_STRIKES,
  REQUEST_BURST,
} from "../../../src/protocol/live/limits.ts";
import { ABOUT, chunk, header, Scripted, STRIPES } from "./scripted.ts";

const HEADERS = { kind: "headerRequest", epoch: 1, firstSeq: 1, count: 256, step: 1 } as const;

/** A source that has made 40 pieces. */
function source(): Scripted {
  const swarm = new Scripted({ about: { ...ABOUT, role: "source", digest: 1 } });
  for (let seq = 1; seq <= 40; seq++) {
    const chunks = Array.from({ length: STRIPES }, (_, stripe) => chunk(seq, stripe).bytes);
    swarm.input({ kind: "produced", header: header(seq), chunks });
  }
  return swarm;
}

/** A viewer that one peer feeds, up to piece 120. */
function fed(about: Partial<typeof ABOUT> = {}): { readonly swarm: Scripted; readonly parent: number } {
  const swarm = new Scripted();
  const parent = swarm.holder(100, undefined, true, about);
  swarm.pass(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 101 });
  for (let seq = 101; seq <= 120; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: false, header: header(seq) });
    for (let stripe = 0; stripe < STRIPES; stripe++) swarm.receive(parent, chunk(seq, stripe));
    swarm.receiveWindow(parent, seq);
    swarm.pass(125);
  }
  return { swarm, parent };
}

test("Answers: a peer gets a limited number of headers, and one that goes on asking is banned", () => {
  const swarm = source();
  const flood = swarm.peer(undefined);
  for (let i = 0; i < 3_000; i++) swarm.receive(flood, { ...HEADERS, onlyRandomAccess: false });
  assert.ok(swarm.sent("header", flood).length <= HEADER_BURST);
  assert.ok(swarm.sent("lacking", flood).length <= MAX_STRIKES + 1);
  assert.equal(swarm.of("banned").length, 1);
});

test("Answers: a peer may request a limited number of chunks, and one that goes on is banned", () => {
  const swarm = source();
  const flood = swarm.peer(undefined);
  const chunks = Array.from({ length: 64 }, (_, i) => ({ seq: 1_000_000 + i, stripe: 0, withinMs: 500 }));
  for (let i = 0; i < 3_000; i++) swarm.receive(flood, { kind: "request", epoch: 1, chunks });
  assert.ok(swarm.sent("lacking", flood).length <= REQUEST_BURST / 64 + 1);
  assert.equal(swarm.of("banned").length, 1);
});

test("Answers: a request for headers that are not here, or of another epoch, is refused at once", () => {
  const swarm = source();
  const peer = swarm.peer(undefined);
  for (const wanted of [{ firstSeq: 41 }, { epoch: 2 }, { onlyRandomAccess: true, firstSeq: 99 }])
    swarm.receive(peer, { ...HEADERS, onlyRandomAccess: false, ...wanted });
  assert.deepEqual(
    swarm.sent("lacking", peer).map(({ epoch, chunks }) => [epoch, chunks]),
    [
      [1, [{ seq: 41, stripe: 255, reason: "not-here" }]],
      [2, [{ seq: 1, stripe: 255, reason: "not-here" }]],
      [1, [{ seq: 99, stripe: 255, reason: "not-here" }]],
    ],
  );
  assert.deepEqual(swarm.sent("header", peer), []);
});

test("Answers: chunks of another epoch are refused in one NAK of that epoch", () => {
  const swarm = source();
  const peer = swarm.peer(undefined);
  const chunks = [
    { seq: 7, stripe: 1, withinMs: 500 },
    { seq: 8, stripe: 3, withinMs: 500 },
  ];
  swarm.receive(peer, { kind: "request", epoch: 9, chunks });
  assert.deepEqual(swarm.sent("lacking", peer), [
    {
      kind: "lacking",
      epoch: 9,
      chunks: chunks.map(({ seq, stripe }) => ({ seq, stripe, reason: "not-here" })),
      holders: [],
    },
  ]);
});

test("Answers: a peer that asks for the headers of each second gets all of them", () => {
  const swarm = source();
  const peer = swarm.peer(undefined);
  for (let second = 0; second < 60; second++) {
    const count = HEADERS_PER_SECOND / 2;
    swarm.receive(peer, { ...HEADERS, count, onlyRandomAccess: false });
    swarm.receive(peer, { kind: "ping", token: 1, clockMs: 0 });
    swarm.pass(1_000);
    assert.equal(swarm.sent("header", peer).length, count * (second + 1));
  }
});

test("Answers: a flood of header requests does not delay the repairs of a viewer that has been served for long", () => {
  const swarm = source();
  const viewer = swarm.peer(undefined, { homeStripe: 1 });
  const wanted = { epoch: 1, startSeq: 41, backfillPieces: 0, have: [0], isDesperate: false };
  swarm.receive(viewer, { kind: "subscribe", stripes: 2, ...wanted });
  for (let i = 0; i < 6; i++) {
    swarm.pass(1_000);
    swarm.receive(viewer, { kind: "ping", token: 1, clockMs: 0 });
  }
  const strangers = Array.from({ length: 10 }, () => swarm.peer(undefined));
  for (let i = 0; i < 100; i++) {
    for (const stranger of strangers) {
      swarm.receive(stranger, { ...HEADERS, onlyRandomAccess: false });
      const chunks = Array.from({ length: 64 }, (_, n) => ({
        seq: 1 + (n % 40),
        stripe: 0,
        withinMs: 2_000,
      }));
      swarm.receive(stranger, { kind: "request", epoch: 1, chunks });
    }
  }
  swarm.receive(viewer, { kind: "request", epoch: 1, chunks: [{ seq: 40, stripe: 0, withinMs: 2_000 }] });
  assert.equal(swarm.sent("chunk", viewer).length, 1);
});

test("Pulls: a peer that refuses each request is asked less and less often, and is not banned", () => {
  const { swarm, parent } = fed();
  const refused = () => swarm.sent("request", parent).flatMap(({ chunks }) => chunks).length;
  const before = refused();
  let answered = swarm.sent("request", parent).length;
  swarm.receive(parent, { kind: "header", isAnswer: false, header: header(121) });
  // Four chunks for three seconds, over a network without delay.
  for (let ms = 0; ms < 3_000; ms += 5) {
    if (ms % 250 === 0) swarm.receiveWindow(parent, 121);
    for (const { chunks } of swarm.sent("request", parent).slice(answered)) {
      answered++;
      const lacking = chunks.map(({ seq, stripe }) => ({ seq, stripe, reason: "too-late" as const }));
      swarm.receive(parent, { kind: "lacking", epoch: 1, chunks: lacking, holders: [] });
    }
    swarm.pass(5);
  }
  const times = refused() - before;
  assert.ok(times >= 2 * STRIPES && times <= 8 * STRIPES, `${times} requests`);
  assert.equal(swarm.of("banned").length, 0);
});

test("Conduct: the last parent that delivers is not banned for useless messages, and another one is, for a short time", () => {
  const flood = (swarm: Scripted, from: number) => {
    for (let i = 0; i < 2 * MAX_STRIKES; i++)
      swarm.receive(from, { kind: "request", epoch: 9, chunks: [{ seq: 1, stripe: 0, withinMs: 1 }] });
  };
  const { swarm, parent } = fed();
  flood(swarm, parent);
  assert.equal(swarm.of("banned").length, 0);
  const stranger = swarm.holder(120);
  flood(swarm, stranger);
  const [ban] = swarm.of("banned");
  assert.ok(ban && ban.forMs < MAX_BAN_MS / 10, `${ban?.forMs} ms`);
});

test("Neighbours: a banned peer is dialed again when the ban has expired, and each further ban is longer", () => {
  const swarm = new Scripted();
  const address = { host: "192.0.2.9", port: 6881 };
  swarm.input({ kind: "found", addresses: [address] });
  const bans: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { connection } = swarm.of("connect").at(-1)!;
    swarm.input({ kind: "opened", connection, about: { ...ABOUT, digest: 5 }, rttMs: 20 });
    for (let n = 0; n <= MAX_STRIKES; n++) swarm.receive(connection, { kind: "ping", token: 1, clockMs: 0 });
    bans.push(swarm.of("banned").at(-1)!.forMs);
    assert.equal(swarm.of("connect").length, i + 1);
    swarm.pass(bans.at(-1)! + 1_000);
    assert.equal(swarm.of("connect").length, i + 2);
  }
  assert.deepEqual(bans, [bans[0], 2 * bans[0]!, 4 * bans[0]!]);
});

test("Parents: the candidates of a refusal that answers nothing are not dialed", () => {
  const { swarm, parent } = fed();
  const stranger = swarm.peer(undefined);
  const candidates = [{ address: { host: "9.9.9.9", port: 9 }, freeSlots: 1, lagMs: 0 }];
  const refusal = { kind: "refused", stripes: 1, reason: "full", retryMs: 100, candidates } as const;
  const dialed = () => swarm.of("connect").filter(({ address }) => address.host === "9.9.9.9").length;
  swarm.receive(stranger, refusal);
  swarm.pass(1_000);
  assert.equal(dialed(), 0);
  swarm.receive(parent, refusal);
  swarm.pass(1_000);
  assert.equal(dialed(), 1);
});
