import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { decodeChunk } from "../../src/wire/live-chunk-message.ts";
import { ChunkAssembler, type WholeChunk, writeChunk } from "../../src/wire/live-fragments.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../src/wire/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer-message-writer.ts";

const FORMAT = { stripeCount: 4, maxPieceBytes: 2_097_152 };

function chunkOf(length: number, stripe = 1, seq = 7): WholeChunk {
  const bytes = Uint8Array.from({ length }, (_, i) => (i * 31 + stripe) & 0xff);
  return { epoch: 3, seq, stripe, isLate: false, bytes };
}

/** The CHUNK messages of a chunk, as they come out of a connection. */
function messagesOf(chunk: WholeChunk): Uint8Array[] {
  const writer = new PeerMessageWriter();
  writeChunk(writer, 9, chunk);
  const payloads: Uint8Array[] = [];
  const ignore = () => undefined;
  const extended = (_: number, payload: Uint8Array) => payloads.push(payload.slice());
  const handler = new Proxy({} as PeerMessageHandler, {
    get: (_, name) => (name === "extended" ? extended : ignore),
  });
  const limits = { maxBitfieldBytes: 0, maxExtendedBytes: 16_500, maxBlockBytes: 0 };
  new PeerMessageDecoder(handler, limits).feed(writer.take() ?? new Uint8Array(0));
  return payloads;
}

const take = (assembler: ChunkAssembler, payload: Uint8Array) => assembler.take(decodeChunk(payload, 4));

test("writeChunk and ChunkAssembler carry chunks of every size", () => {
  const assembler = new ChunkAssembler(FORMAT);
  for (const length of [1, 188, 16_383, 16_384, 16_385, 32_768, 100_000, 524_332]) {
    const payloads = messagesOf(chunkOf(length));
    assert.equal(payloads.length, Math.ceil(length / 16_384));
    const taken = payloads.map((payload) => take(assembler, payload));
    assert.deepEqual(taken.pop(), chunkOf(length));
    assert.ok(taken.every((chunk) => chunk === undefined));
  }
  assert.equal(messagesOf(chunkOf(0)).length, 0);
});

test("ChunkAssembler gives bytes that are its taker's own", () => {
  const payload = messagesOf(chunkOf(100))[0]!;
  const chunk = take(new ChunkAssembler(FORMAT), payload)!;
  payload.fill(0);
  assert.deepEqual(chunk, chunkOf(100));
});

test("ChunkAssembler bears chunks that come between the fragments of another", () => {
  const assembler = new ChunkAssembler(FORMAT);
  const chunks = [0, 1, 2, 3].map((stripe) => chunkOf(40_000, stripe));
  const payloads = chunks.map(messagesOf);
  for (const fragment of [0, 1]) {
    for (const each of payloads) assert.equal(take(assembler, each[fragment]!), undefined);
  }
  assert.deepEqual(take(assembler, messagesOf(chunkOf(10, 0, 8))[0]!), chunkOf(10, 0, 8));
  for (const [stripe, each] of payloads.entries())
    assert.deepEqual(take(assembler, each[2]!), chunks[stripe]);
});

test("ChunkAssembler refuses fragments that are left out, come twice, or have no beginning", () => {
  const [first, second, third] = messagesOf(chunkOf(40_000)) as [Uint8Array, Uint8Array, Uint8Array];
  for (const order of [[second], [third], [first, third], [first, first], [first, second, second]]) {
    const assembler = new ChunkAssembler(FORMAT);
    const all = () =>
      order.forEach((payload) => {
        take(assembler, payload);
      });
    assert.throws(all, /fragment \d, \d expected/);
  }
});

test("ChunkAssembler refuses a fifth chunk that is begun, and a chunk beyond the stream's largest", () => {
  const assembler = new ChunkAssembler(FORMAT);
  for (let seq = 0; seq < 4; seq++) take(assembler, messagesOf(chunkOf(40_000, 1, seq))[0]!);
  assert.throws(() => take(assembler, messagesOf(chunkOf(40_000, 1, 4))[0]!), /more than 4 chunks begun/);
  const small = new ChunkAssembler({ stripeCount: 4, maxPieceBytes: 80_000 });
  const payloads = messagesOf(chunkOf(30_000));
  take(small, payloads[0]!);
  assert.throws(
    () => take(small, payloads[1]!),
    (error) => error instanceof DecodeError && /at most 20116/.test(error.message),
  );
});
