import assert from "node:assert/strict";
import { test } from "node:test";
import { PRIORITY } from "../../../src/protocol/live/contract.ts";
import { chunk, header, Scripted, STRIPES } from "./scripted.ts";

function fetch(swarm: Scripted, seq: number): void {
  swarm.input({ kind: "fetched", found: { epoch: 1, seq, chunks: all(seq) } });
}

/** A viewer that plays, with headers up to 110 whose chunks have not arrived. */
function headersOnly() {
  const swarm = new Scripted();
  const parent = swarm.holder(100);
  swarm.receive(parent, { kind: "subscribed", stripes: 15, epoch: 1, startSeq: 93 });
  const child = swarm.peer(undefined);
  const have = Array.from({ length: STRIPES }, () => 0);
  const subscription = { epoch: 1, startSeq: 101, backfillPieces: 0, have, isDesperate: true };
  swarm.receive(child, { kind: "subscribe", stripes: 15, ...subscription });
  for (let seq = 93; seq <= 110; seq++) {
    swarm.receive(parent, { kind: "header", isAnswer: seq <= 100, header: header(seq) });
    if (seq > 100) swarm.pass(125);
  }
  return { swarm, child };
}

const bytesOf = (seq: number, stripe: number) => chunk(seq, stripe).bytes;
const all = (seq: number) =>
  Array.from({ length: STRIPES }, (_, stripe) => ({ stripe, bytes: bytesOf(seq, stripe) }));

test("Fetched reports incomplete pieces that run out of time, the oldest first, and no others", () => {
  const { swarm } = headersOnly();
  const late = swarm.swarm.late(swarm.now);
  assert.equal(late.isPlaying, true);
  const missing = late.missing(3_000);
  const seqs = missing.map(({ header: { value } }) => value.seq);
  assert.ok(seqs.length > 8);
  assert.deepEqual(
    seqs,
    [...seqs].sort((a, b) => a - b),
  );
  assert.ok(missing.every((piece) => piece.missing === 15 && piece.remainingMs > 0));
  const urgent = late.missing(missing[2]!.remainingMs);
  assert.deepEqual(
    urgent.map(({ header: { value } }) => value.seq),
    seqs.slice(0, 2),
  );
});

test("Fetched plays valid chunks, forwards them as late, and stops pulling them", () => {
  const { swarm, child } = headersOnly();
  const missing = swarm.swarm
    .late(swarm.now)
    .missing(3_000)
    .map(({ header: { value } }) => value.seq);
  // All up to the first piece that the child wants.
  for (const seq of missing.filter((one) => one < 101)) fetch(swarm, seq);
  const first = 101;
  fetch(swarm, first);
  assert.equal(swarm.of("piece").at(-1)?.header.value.seq, first);
  const sent = swarm.outputs.flatMap((output) =>
    output.kind === "send" && output.connection === child && output.message.kind === "chunk" ? [output] : [],
  );
  assert.equal(sent.length, STRIPES);
  for (const { message, priority } of sent) {
    assert.equal(message.kind === "chunk" && message.isLate, true);
    assert.notEqual(priority, PRIORITY.live);
  }
  const before = swarm.sent("request").length;
  const other = swarm.holder(110);
  swarm.pass(500);
  const asked = swarm
    .sent("request")
    .slice(before)
    .flatMap(({ chunks }) => chunks.map(({ seq }) => seq));
  assert.ok(asked.length > 0 && swarm.sent("request", other).length > 0);
  assert.ok(!asked.includes(first));
  assert.ok(
    swarm.swarm
      .late(swarm.now)
      .missing(3_000)
      .every(({ header: { value } }) => value.seq !== first),
  );
});

test("Fetched ignores invalid chunks, another epoch, and unknown pieces", () => {
  const { swarm } = headersOnly();
  const { length } = swarm.swarm.late(swarm.now).missing(3_000);
  const [piece] = swarm.swarm.late(swarm.now).missing(3_000);
  const { seq } = piece!.header.value;
  const wrong = all(seq).map(({ stripe }) => ({ stripe, bytes: new Uint8Array(188).fill(255) }));
  swarm.input({ kind: "fetched", found: { epoch: 1, seq, chunks: wrong } });
  swarm.input({ kind: "fetched", found: { epoch: 2, seq, chunks: all(seq) } });
  swarm.input({ kind: "fetched", found: { epoch: 1, seq: 9_999, chunks: all(9_999) } });
  swarm.input({
    kind: "fetched",
    found: { epoch: 1, seq, chunks: [{ stripe: 16, bytes: bytesOf(seq, 0) }] },
  });
  assert.equal(swarm.swarm.late(swarm.now).missing(3_000).length, length);
  assert.deepEqual(swarm.of("piece"), []);
});
