import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { CHUNK_HEAD_BYTES, decodeChunk, writeChunkHead } from "../../src/wire/live/chunk-message.ts";
import { ChunkAssembler } from "../../src/wire/live/fragments.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";

const FRAGMENT_BYTES = 16_384;

type WholeChunk = NonNullable<ReturnType<ChunkAssembler["take"]>>;

const FORMAT = { stripeCount: 4, maxPieceBytes: 2_097_152 };

function chunkOf(length: number, stripe = 1, seq = 7): WholeChunk {
  const bytes = Uint8Array.from({ length }, (_, i) => (i * 31 + stripe) & 0xff);
  return { epoch: 3, seq, stripe, isLate: false, bytes };
}

/** The CHUNK messages of a chunk, as a connection delivers them. */
function messagesOf({ bytes, ...chunk }: WholeChunk): Uint8Array[] {
  const writer = new PeerMessageWriter();
  for (let at = 0; at < bytes.length; at += FRAGMENT_BYTES) {
    const head = new Uint8Array(CHUNK_HEAD_BYTES);
    const isLast = at + FRAGMENT_BYTES >= bytes.length;
    writeChunkHead(head, { ...chunk, fragment: at / FRAGMENT_BYTES, isLast });
    writer.extended(9, head, bytes.subarray(at, at + FRAGMENT_BYTES));
  }
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

test("ChunkAssembler joins the fragments of chunks of every size", () => {
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

test("ChunkAssembler returns copies", () => {
  const payload = messagesOf(chunkOf(100))[0]!;
  const chunk = take(new ChunkAssembler(FORMAT), payload)!;
  payload.fill(0);
  assert.deepEqual(chunk, chunkOf(100));
});

test("ChunkAssembler accepts interleaved fragments of several chunks", () => {
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

test("ChunkAssembler refuses missing and repeated fragments", () => {
  const [first, second, third] = messagesOf(chunkOf(40_000)) as [Uint8Array, Uint8Array, Uint8Array];
  for (const order of [[second], [third], [first, third], [first, first], [first, second, second]]) {
    const assembler = new ChunkAssembler(FORMAT);
    const all = () =>
      order.forEach((payload) => {
        take(assembler, payload);
      });
    assert.throws(all, /expected fragment \d, not \d/);
  }
});

test("ChunkAssembler refuses a fifth incomplete chunk, and a chunk larger than the stream allows", () => {
  const assembler = new ChunkAssembler(FORMAT);
  for (let seq = 0; seq < 4; seq++) take(assembler, messagesOf(chunkOf(40_000, 1, seq))[0]!);
  assert.throws(
    () => take(assembler, messagesOf(chunkOf(40_000, 1, 4))[0]!),
    /more than 4 incomplete chunks/,
  );
  const small = new ChunkAssembler({ stripeCount: 4, maxPieceBytes: 80_000 });
  const payloads = messagesOf(chunkOf(30_000));
  take(small, payloads[0]!);
  assert.throws(
    () => take(small, payloads[1]!),
    (error) => error instanceof DecodeError && /at most 20116/.test(error.message),
  );
});
