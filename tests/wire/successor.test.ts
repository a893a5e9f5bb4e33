import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { type Infohash, infohashBytes } from "../../src/base/ids.ts";
import { ed25519Key, ed25519Verifier } from "../../src/runtime/crypto.ts";
import { decodeStat, encodeStat } from "../../src/wire/live/stat.ts";
import { decodeSuccessor, encodeSuccessor } from "../../src/wire/live/successor.ts";
import { INFOHASH, KEY, SUCCESSOR, SUCCESSOR_RECORD, VERIFY } from "./live-vectors.ts";

test("encodeSuccessor and decodeSuccessor round trip, also in a STAT", () => {
  assert.deepEqual(decodeSuccessor(SUCCESSOR_RECORD, INFOHASH, VERIFY), SUCCESSOR);
  const base = { epoch: 1, number: 2, timestampMs: 3, isEnd: false, relays: [], trackers: [] };
  const stat = encodeStat({ ...base, successor: SUCCESSOR_RECORD }, INFOHASH, KEY.sign);
  assert.deepEqual(decodeStat(stat).successor, SUCCESSOR_RECORD);
});

test("decodeSuccessor refuses records of another key or stream, changed ones, and a stream that succeeds itself", () => {
  const other = ed25519Key(new Uint8Array(32).fill(8));
  const foreign = "33".repeat(20) as Infohash;
  assert.throws(() => decodeSuccessor(SUCCESSOR_RECORD, foreign, VERIFY), DecodeError);
  assert.throws(
    () => decodeSuccessor(SUCCESSOR_RECORD, INFOHASH, ed25519Verifier(other.publicKey)),
    DecodeError,
  );
  for (let at = 0; at < SUCCESSOR_RECORD.length; at++) {
    const changed = SUCCESSOR_RECORD.slice();
    changed[at]! ^= 4;
    assert.throws(() => decodeSuccessor(changed, INFOHASH, VERIFY), DecodeError, `byte ${at}`);
  }
  const self = encodeSuccessor({ ...SUCCESSOR, infohash: INFOHASH }, INFOHASH, KEY.sign);
  assert.throws(() => decodeSuccessor(self, INFOHASH, VERIFY), DecodeError);
  assert.throws(() => decodeSuccessor(SUCCESSOR_RECORD.subarray(1), INFOHASH, VERIFY), DecodeError);
  assert.equal(infohashBytes(SUCCESSOR.infohash).length, 20);
});
