import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { ed25519Key, ed25519Verifier, sha256 } from "../../src/runtime/crypto.ts";

/** RFC 8032 7.1, tests 1 to 3: seed, public key, message, signature. */
const EXAMPLES = [
  [
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "",
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
  ],
  [
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "72",
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  ],
] as const;

test("ed25519Key, ed25519Verifier: examples of RFC 8032", () => {
  for (const [seed, publicKey, message, signature] of EXAMPLES) {
    const key = ed25519Key(fromHex(seed)!);
    assert.equal(toHex(key.publicKey), publicKey);
    assert.equal(toHex(key.sign(fromHex(message)!)), signature);
    const verify = ed25519Verifier(fromHex(publicKey)!);
    assert.equal(verify(fromHex(message)!, fromHex(signature)!), true);
    assert.equal(verify(latin1Bytes("other"), fromHex(signature)!), false);
  }
});

test("ed25519Verifier, ed25519Key: refuse keys of wrong length", () => {
  for (const length of [0, 31, 33]) {
    assert.throws(() => ed25519Verifier(new Uint8Array(length)));
    assert.throws(() => ed25519Key(new Uint8Array(length)));
  }
});

test("sha256: example of FIPS 180", () => {
  const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  assert.equal(toHex(sha256(latin1Bytes("abc"))), digest);
});

test("ed25519Verifier: a key that is not a curve point verifies nothing, on any runtime", () => {
  // y = 2 (RFC 8032 5.1.3: x has no square root), as in a hostile transport file.
  const noPoint = new Uint8Array(32);
  noPoint[0] = 2;
  assert.equal(ed25519Verifier(noPoint)(new Uint8Array(3), new Uint8Array(64)), false);
});
