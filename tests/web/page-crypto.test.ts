import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Point } from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import { concatBytes, fromHex } from "../../src/base/bytes.ts";
import { isValidPublicKey } from "../../src/base/signature.ts";
import * as engine from "../../src/runtime/crypto.ts";
import { sha1, sha256 } from "../../src/runtime/crypto.ts";
import * as page from "../../src/web/page/viewer/page-crypto.ts";
import { someBytes } from "../engine/parts.ts";

const ORDER = Point.CURVE().n;

/** Returns whether the signature is valid. Fails if the page and the engine disagree. */
function isValid(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const result = page.ed25519Verifier(key)(message, signature);
  assert.equal(result, engine.ed25519Verifier(key)(message, signature));
  return result;
}

test("ed25519Verifier of the page: decides as the engine does, on valid, changed and malleable signatures", () => {
  const { publicKey, sign } = engine.ed25519Key(someBytes(32, 1));
  for (let i = 0; i < 20; i++) {
    const message = someBytes(i * 13, i);
    const signature = sign(message);
    assert.ok(isValid(publicKey, message, signature));
    const changed = signature.slice();
    changed[(i * 7) % 64]! ^= 1 << (i % 8);
    assert.ok(!isValid(publicKey, message, changed));
    assert.ok(!isValid(publicKey, concatBytes([message, Uint8Array.of(1)]), signature));
    // The same S plus the order of the group (RFC 8032 5.1.7).
    const s = littleEndian(signature.subarray(32)) + ORDER;
    assert.ok(!isValid(publicKey, message, concatBytes([signature.subarray(0, 32), bytesOf(s)])));
  }
  assert.ok(!isValid(publicKey, new Uint8Array(0), new Uint8Array(64)));
  assert.ok(!page.ed25519Verifier(publicKey)(new Uint8Array(0), new Uint8Array(63)));
});

test("ed25519Verifier of the page: does not multiply by the cofactor, as the engine", () => {
  // A key with a part of order 8: the signature is valid if that part vanishes.
  const torsion = Point.fromBytes(
    fromHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")!,
  );
  const secret = 123_456_789n;
  const key = Point.BASE.multiply(secret).add(torsion).toBytes();
  const results = Array.from({ length: 40 }, (_, i) => {
    const message = Uint8Array.of(i);
    const r = Point.BASE.multiply(987_654_321n).toBytes();
    const k = littleEndian(sha512(concatBytes([r, key, message]))) % ORDER;
    return isValid(key, message, concatBytes([r, bytesOf((987_654_321n + k * secret) % ORDER)]));
  });
  assert.ok(results.includes(true) && results.includes(false), results.join());
});

test("ed25519Verifier of the page: bytes that are not a point of the curve verify nothing", () => {
  const noPoint = new Uint8Array(32);
  noPoint[0] = 2;
  assert.equal(page.ed25519Verifier(noPoint)(new Uint8Array(3), new Uint8Array(64)), false);
});

test("ed25519Verifier of the page: the cases of the live protocol", () => {
  const path = new URL("../fixtures/live/cases.json", import.meta.url);
  const { signatures } = JSON.parse(readFileSync(path, "utf8")) as {
    signatures: { what: string; key: string; message: string; signature: string; isValid: boolean }[];
  };
  assert.ok(signatures.length > 5);
  for (const { what, key, message, signature, isValid } of signatures) {
    const publicKey = fromHex(key)!;
    const isAccepted =
      isValidPublicKey(publicKey) && page.ed25519Verifier(publicKey)(fromHex(message)!, fromHex(signature)!);
    assert.equal(isAccepted, isValid, what);
  }
});

test("hashes of the page: equal those of the engine", () => {
  for (const length of [0, 1, 63, 64, 1000]) {
    const bytes = someBytes(length, length);
    assert.deepEqual(page.sha1(bytes), new Uint8Array(sha1(bytes)));
    assert.deepEqual(page.sha256(bytes), new Uint8Array(sha256(bytes)));
  }
});

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

function bytesOf(number: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((number >> BigInt(8 * i)) & 0xffn));
}
