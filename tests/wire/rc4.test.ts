import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { Rc4 } from "../../src/wire/peer/rc4.ts";

const VECTORS: readonly [key: string, clear: string, cipher: string][] = [
  ["Key", "Plaintext", "bbf316e8d940af0ad3"],
  ["Wiki", "pedia", "1021bf0420"],
  ["Secret", "Attack at dawn", "45a01f645fc35b383552544b9bf5"],
];

test("Rc4.apply reproduces the known vectors and decrypts them, in parts and in place", () => {
  for (const [key, clear, cipher] of VECTORS) {
    for (let step = 1; step <= clear.length; step++) {
      const bytes = latin1Bytes(clear);
      const rc4 = new Rc4(latin1Bytes(key));
      for (let at = 0; at < bytes.length; at += step) {
        const part = bytes.subarray(at, at + step);
        rc4.apply(part, part);
      }
      assert.equal(toHex(bytes), cipher);
      const back = new Uint8Array(bytes.length);
      new Rc4(latin1Bytes(key)).apply(bytes, back);
      assert.deepEqual(back, latin1Bytes(clear));
    }
  }
});

test("Rc4.discard: the key stream of RFC 6229 at 1024, for a key of 40 bits", () => {
  const rc4 = new Rc4(Uint8Array.of(1, 2, 3, 4, 5));
  rc4.discard(1024);
  const stream = new Uint8Array(16);
  rc4.apply(stream, stream);
  assert.equal(toHex(stream), "30abbcc7c20b01609f23ee2d5f6bb7df");
});
