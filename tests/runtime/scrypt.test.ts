import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../src/base/bytes.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { scrypt } from "../../src/runtime/crypto.ts";

test("scrypt: the vectors of RFC 7914 12", async () => {
  const salt = encodeUtf8("NaCl");
  const key = await scrypt("password", salt, { N: 1024, r: 8, p: 16, keyBytes: 64 });
  assert.match(toHex(key), /^fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162/);
  const large = await scrypt("pleaseletmein", encodeUtf8("SodiumChloride"), {
    N: 16384,
    r: 8,
    p: 1,
    keyBytes: 64,
  });
  assert.match(toHex(large), /^7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2/);
});

test("scrypt: does not block the event loop", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await scrypt("p", new Uint8Array(16), { N: 2 ** 16, r: 8, p: 1, keyBytes: 32 });
  clearInterval(timer);
  assert.ok(turns > 0, `the loop turned ${turns} times`);
});
