import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, writeU32 } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import {
  decodeHashMessage,
  encodeHashRange,
  type HashRange,
  proofHashCount,
} from "../../src/wire/peer/hash-message.ts";
import { handleOnly, MESSAGE, PeerMessageDecoder } from "../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";

const ROOT = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const RANGE: HashRange = { root: ROOT, baseLayer: 2, index: 512, length: 8, proofLayers: 4 };
const LIMITS = { maxBitfieldBytes: 8, maxExtendedBytes: 64, maxBlockBytes: 64 };

/** Decodes hash messages from wire bytes. */
function heard(bytes: Uint8Array, step: number) {
  const messages: { id: number; payload: Uint8Array }[] = [];
  const handler = handleOnly({ hash: (id, payload) => void messages.push({ id, payload: payload.slice() }) });
  const decoder = new PeerMessageDecoder(handler, LIMITS);
  for (let at = 0; at < bytes.length; at += step) decoder.feed(bytes.slice(at, at + step));
  return messages;
}

test("decodeHashMessage: round trip for every split of the input (BEP 52)", () => {
  const hashes = Uint8Array.from({ length: 32 * (8 + 2) }, (_, i) => i);
  const writer = new PeerMessageWriter();
  writer.hash(MESSAGE.hashRequest, encodeHashRange(RANGE));
  writer.hash(MESSAGE.hashes, encodeHashRange(RANGE), hashes);
  writer.hash(MESSAGE.hashReject, encodeHashRange(RANGE));
  const bytes = writer.take()!;
  for (const step of [1, 7, 53, bytes.length]) {
    const messages = heard(bytes, step).map(({ id, payload }) => decodeHashMessage(id, payload));
    assert.deepEqual(messages, [
      { kind: "request", range: RANGE },
      { kind: "hashes", range: RANGE, hashes },
      { kind: "reject", range: RANGE },
    ]);
  }
});

test("encodeHashRange: the bytes of BEP 52", () => {
  const bytes = encodeHashRange({ root: ROOT, baseLayer: 7, index: 0x01020304, length: 512, proofLayers: 9 });
  const numbers = [0, 0, 0, 7, 1, 2, 3, 4, 0, 0, 2, 0, 0, 0, 0, 9];
  assert.deepEqual([...bytes], [...ROOT, ...numbers]);
});

for (const [length, proofLayers, expected] of [
  [512, 8, 0],
  [512, 9, 1],
  [512, 0, 0],
  [2, 0, 0],
  [2, 1, 1],
  [1, 1, 2],
  [6, 4, 2],
  [8, 4, 2],
] as const)
  test(`proofHashCount: ${length} hashes with ${proofLayers} proof layers need ${expected} proof hashes`, () => {
    assert.equal(proofHashCount({ length, proofLayers }), expected);
  });

const range = (change: Partial<HashRange> = {}) => encodeHashRange({ ...RANGE, ...change });
const REFUSED: readonly (readonly [string, number, Uint8Array])[] = [
  ["another message", 24, range()],
  ["nothing", MESSAGE.hashRequest, new Uint8Array(0)],
  ["a truncated range", MESSAGE.hashRequest, range().subarray(1)],
  ["a request with extra bytes", MESSAGE.hashRequest, concatBytes([range(), new Uint8Array(32)])],
  ["a reject with extra bytes", MESSAGE.hashReject, concatBytes([range(), new Uint8Array(1)])],
  ["hashes without a hash", MESSAGE.hashes, range()],
  ["one hash too few", MESSAGE.hashes, concatBytes([range(), new Uint8Array(32 * 9)])],
  ["one hash too many", MESSAGE.hashes, concatBytes([range(), new Uint8Array(32 * 11)])],
  ["part of a hash", MESSAGE.hashes, concatBytes([range(), new Uint8Array(32 * 10 - 1)])],
  ["an absurd length", MESSAGE.hashes, range({ length: 0xffff_ffff, proofLayers: 0xffff_ffff })],
];

for (const [what, id, payload] of REFUSED)
  test(`decodeHashMessage: refuses ${what}`, () => {
    assert.throws(() => decodeHashMessage(id, payload), DecodeError);
  });

test("PeerMessageDecoder: refuses too many hashes before their bytes arrive", () => {
  for (const [bytes, isRefused] of [
    [48 + 32 * (512 + 40), false],
    [48 + 32 * (512 + 40) + 1, true],
    [0xffff_fff0, true],
  ] as const) {
    const head = new Uint8Array(5);
    writeU32(head, 0, 1 + bytes);
    head[4] = MESSAGE.hashes;
    const feed = () => heard(head, 5);
    if (isRefused) assert.throws(feed, DecodeError);
    else assert.deepEqual(feed(), []);
  }
});
