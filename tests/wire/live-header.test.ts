import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, writeU16, writeU32, writeU48 } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { infohashOf } from "../../src/base/ids.ts";
import { ed25519Key, ed25519Verifier, sha256 } from "../../src/runtime/crypto.ts";
import { chunkBytes, chunkRange, cutPiece } from "../../src/wire/live/chunks.ts";
import { decodeHeader, encodeHeader, headerBytes, type PieceHeader } from "../../src/wire/live/header.ts";
import {
  comparePieces,
  isChunkOf,
  isSignedHeader,
  isTimely,
  liveHash,
  signHeader,
} from "../../src/wire/live/trust.ts";
import { chainProblem } from "./header-chain.ts";
import { INFO, INFOHASH, KEY, makePieces, PIECES, VERIFY } from "./live-vectors.ts";

const [FIRST, SECOND] = [PIECES[0]!, PIECES[1]!];

test("chunkRange divides every piece into whole packets without gaps or overlaps", () => {
  for (const stripes of [4, 8, 16]) {
    for (const length of [0, 1, 187, 188, 189, 752, 3008, 3009, 100_000, 125_020, 2 ** 21]) {
      let end = 0;
      for (let stripe = 0; stripe < stripes; stripe++) {
        const range = chunkRange(length, stripes, stripe);
        assert.equal(range.start, end);
        assert.ok(range.start % 188 === 0 || range.start === length);
        assert.ok(range.end - range.start <= chunkBytes(length, stripes));
        end = range.end;
      }
      assert.equal(end, length);
    }
  }
});

test("cutPiece returns one chunk per stripe; the last ones are short or empty", () => {
  const piece = Uint8Array.from({ length: 1000 }, (_, i) => i);
  const chunks = cutPiece(piece, 4);
  assert.deepEqual(
    chunks.map((chunk) => chunk.length),
    [376, 376, 248, 0],
  );
  assert.deepEqual(concatBytes(chunks), piece);
});

test("headerBytes is 60 bytes plus a hash per stripe and the signature", () => {
  assert.deepEqual([4, 8, 16].map(headerBytes), [204, 284, 444]);
});

test("encodeHeader and decodeHeader round trip up to the largest numbers", () => {
  const largest: PieceHeader = {
    epoch: 2 ** 32 - 1,
    seq: 2 ** 48 - 1,
    timestampMs: 2 ** 48 - 1,
    spanMs: 5000,
    clockReference: 2 ** 33 * 300 - 1,
    randomAccessOffset: 65_424,
    isSegmentStart: true,
    segment: 2 ** 32 - 1,
    isDiscontinuity: true,
    isEnd: true,
    pieceBytes: 65_536,
    previousHash: new Uint8Array(20).fill(0xff),
    chunkHashes: new Uint8Array(80).fill(0xff),
  };
  assert.deepEqual(decodeHeader(encodeHeader(largest), INFO), largest);
  const least = { ...FIRST.header, clockReference: 0, randomAccessOffset: 0 };
  assert.deepEqual(decodeHeader(encodeHeader(least), INFO), least);
});

/** Returns the first header with some bytes changed. */
function changed(change: (bytes: Uint8Array) => void): Uint8Array {
  const bytes = FIRST.headerBytes.slice();
  change(bytes);
  return bytes;
}

const BAD: readonly (readonly [string, Uint8Array, RegExp])[] = [
  ["one byte less", FIRST.headerBytes.subarray(1), /expected 204 bytes, not 203/],
  ["one byte more", concatBytes([FIRST.headerBytes, new Uint8Array(1)]), /expected 204 bytes, not 205/],
  ["nothing", new Uint8Array(0), /expected 204/],
  ["another version", changed((bytes) => bytes.set([2], 0)), /version 2/],
  ["other stripes", changed((bytes) => bytes.set([8], 2)), /expected 4 stripes, not 8/],
  ["a long span", changed((bytes) => writeU16(bytes, 20, 5001)), /5000 ms, not 5001/],
  ["before its epoch", changed((bytes) => writeU48(bytes, 14, 1_789_999_999_999)), /before the epoch/],
  ["a clock too high", changed((bytes) => writeU48(bytes, 22, 2 ** 33 * 300)), /clock reference above/],
  [
    "a clock without its flag",
    changed((bytes) => bytes.set([bytes[1]! & ~16], 1)),
    /clock reference without its flag/,
  ],
  ["a keyframe outside", changed((bytes) => writeU32(bytes, 28, 1504)), /outside the piece/],
  ["a keyframe within a packet", changed((bytes) => writeU32(bytes, 28, 100)), /inside a packet/],
  [
    "a keyframe without its flag",
    changed((bytes) => bytes.set([bytes[1]! & ~1], 1)),
    /offset without its flag/,
  ],
  [
    "a segment without keyframe",
    changed((bytes) => {
      bytes[1]! &= ~1;
      writeU32(bytes, 28, 0);
    }),
    /segment start without/,
  ],
  ["too large a piece", changed((bytes) => writeU32(bytes, 32, 65_537)), /at most 65536/],
];

test("decodeHeader refuses contradictions and states the reason", () => {
  for (const [what, bytes, message] of BAD) {
    assert.throws(
      () => decodeHeader(bytes, INFO),
      (error) => error instanceof DecodeError && message.test(error.message),
      what,
    );
  }
});

test("decodeHeader ignores reserved bits", () => {
  const bytes = changed((bytes) => {
    bytes[1]! |= 0xe0;
    bytes[3] = 0xff;
  });
  assert.deepEqual(decodeHeader(bytes, INFO), FIRST.header);
});

test("isSignedHeader refuses every changed bit, another stream, another key and another purpose", () => {
  assert.ok(isSignedHeader(FIRST.headerBytes, INFOHASH, VERIFY));
  for (let at = 0; at < FIRST.headerBytes.length; at++) {
    const bytes = changed((bytes) => bytes.set([bytes[at]! ^ (1 << (at % 8))], at));
    assert.equal(isSignedHeader(bytes, INFOHASH, VERIFY), false, `byte ${at}`);
  }
  assert.equal(isSignedHeader(FIRST.headerBytes, infohashOf(new Uint8Array(20)), VERIFY), false);
  const stranger = ed25519Key(new Uint8Array(32));
  assert.equal(isSignedHeader(FIRST.headerBytes, INFOHASH, ed25519Verifier(stranger.publicKey)), false);
  const plain = changed(() => {});
  plain.set(KEY.sign(plain.subarray(0, -64)), plain.length - 64);
  assert.equal(isSignedHeader(plain, INFOHASH, VERIFY), false);
});

test("isChunkOf refuses a changed chunk, and a chunk of another stripe", () => {
  const chunks = cutPiece(FIRST.piece, 4);
  for (const [stripe, chunk] of chunks.entries()) {
    assert.ok(isChunkOf(FIRST.header, stripe, chunk, sha256));
    assert.equal(isChunkOf(FIRST.header, (stripe + 1) % 4, chunk, sha256), false);
    assert.equal(isChunkOf(SECOND.header, stripe, chunk, sha256), false);
    const bad = chunk.slice();
    bad[bad.length - 1]! ^= 1;
    assert.equal(isChunkOf(FIRST.header, stripe, bad, sha256), false);
  }
});

test("chainProblem accepts skipped numbers, and finds a wrong order, predecessor, timestamp or segment number", () => {
  const check = (change: Partial<PieceHeader>) =>
    chainProblem(FIRST.headerBytes, FIRST.header, { ...SECOND.header, ...change }, sha256);
  assert.equal(check({}), undefined);
  assert.equal(check({ seq: SECOND.header.seq + 24 }), undefined);
  assert.match(check({ seq: FIRST.header.seq })!, /not a later/);
  assert.match(check({ epoch: 0 })!, /not a later/);
  assert.match(check({ previousHash: new Uint8Array(20) })!, /another piece/);
  assert.match(check({ timestampMs: FIRST.header.timestampMs - 1 })!, /backwards/);
  assert.match(check({ segment: FIRST.header.segment - 1 })!, /counted backwards/);
  assert.match(check({ segment: FIRST.header.segment + 2 })!, /left out/);
  assert.equal(check({ segment: FIRST.header.segment + 2, isDiscontinuity: true }), undefined);
  assert.equal(check({ isSegmentStart: true, segment: FIRST.header.segment + 1 }), undefined);
});

test("chainProblem detects two signed versions of one piece", () => {
  const [first, second] = makePieces(INFO, INFOHASH, [1504, 1000], 2);
  assert.ok(isSignedHeader(second!.headerBytes, INFOHASH, VERIFY));
  assert.equal(second!.header.seq, SECOND.header.seq);
  assert.equal(chainProblem(first!.headerBytes, first!.header, second!.header, sha256), undefined);
  assert.match(chainProblem(FIRST.headerBytes, FIRST.header, second!.header, sha256)!, /another piece/);
});

test("comparePieces orders by epoch first", () => {
  assert.ok(comparePieces({ epoch: 1, seq: 900 }, { epoch: 2, seq: 0 }) < 0);
  assert.ok(comparePieces({ epoch: 2, seq: 1 }, { epoch: 2, seq: 0 }) > 0);
  assert.equal(comparePieces({ epoch: 2, seq: 1 }, { epoch: 2, seq: 1 }), 0);
});

test("isTimely accepts a clock that is minutes off, and refuses the far future and the past", () => {
  const { header } = FIRST;
  const at = header.timestampMs;
  assert.ok(isTimely(header, at - 600_000, undefined));
  assert.equal(isTimely(header, at - 600_001, undefined), false);
  assert.ok(isTimely(header, at + 86_400_000, at + 30_000));
  assert.equal(isTimely(header, at, at + 30_001), false);
});

test("signHeader signs in place", () => {
  const bytes = encodeHeader(SECOND.header);
  signHeader(bytes, INFOHASH, KEY.sign);
  assert.deepEqual(bytes, SECOND.headerBytes);
  assert.equal(liveHash(bytes, sha256).length, 20);
});
