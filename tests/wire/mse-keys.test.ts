import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { randomBelow } from "../../src/base/random.ts";
import { MSE_KEY_BYTES, MSE_PRIVATE_BYTES, mseKeyPair, mseSecret } from "../../src/wire/peer/mse-keys.ts";
import { seededRandom } from "../seeded-random.ts";

const PRIME =
  "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22514a08798e3404ddef9519b3cd3a431b" +
  "302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6f44c42e9a63a36210000000000090563";

test("mseSecret: both sides derive the same secret, different for each pair", () => {
  const random = seededRandom(7);
  const pair = () =>
    mseKeyPair(Uint8Array.from({ length: MSE_PRIVATE_BYTES }, () => randomBelow(random, 256)));
  const seen = new Set<string>();
  for (let i = 0; i < 20; i++) {
    const [a, b] = [pair(), pair()];
    assert.equal(a.publicKey.length, MSE_KEY_BYTES);
    const secret = mseSecret(a.privateKey, b.publicKey);
    assert.deepEqual(secret, mseSecret(b.privateKey, a.publicKey));
    assert.equal(secret.length, MSE_KEY_BYTES);
    seen.add(toHex(secret));
  }
  assert.equal(seen.size, 20);
});

test("mseKeyPair: a small exponent is written with all its leading zeros", () => {
  const one = new Uint8Array(MSE_PRIVATE_BYTES);
  one[MSE_PRIVATE_BYTES - 1] = 9;
  assert.equal(toHex(mseKeyPair(one).publicKey), "200".padStart(192, "0"));
});

test("mseSecret: refuses public keys that give a predictable secret", () => {
  const { privateKey } = mseKeyPair(new Uint8Array(MSE_PRIVATE_BYTES).fill(5));
  const last = (digit: string) => PRIME.slice(0, -1) + digit;
  for (const key of ["0", "1", last("2"), last("3"), last("4"), "f".repeat(192)]) {
    assert.throws(() => mseSecret(privateKey, fromHex(key.padStart(192, "0"))!), DecodeError, key);
  }
  assert.throws(() => mseSecret(privateKey, new Uint8Array(95).fill(9)), DecodeError);
  assert.doesNotThrow(() => mseSecret(privateKey, fromHex(last("1"))!));
});
