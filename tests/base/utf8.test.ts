import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeUtf8, encodeUtf8 } from "../../src/base/utf8.ts";

const TEXTS = [
  "",
  "plain",
  "naïve",
  "日本語",
  "𝄞 clef",
  "\u{10ffff}",
  "\ufeffmark",
  `${"x".repeat(20_000)}é`,
];

test("encodeUtf8 and decodeUtf8 agree with the platform", () => {
  for (const text of TEXTS) {
    assert.deepEqual(encodeUtf8(text), new TextEncoder().encode(text));
    assert.equal(decodeUtf8(encodeUtf8(text)), text);
  }
});

test("encodeUtf8 writes a lone surrogate as U+FFFD", () => {
  assert.deepEqual(encodeUtf8("a\ud800b"), encodeUtf8("a\ufffdb"));
  assert.deepEqual(encodeUtf8("\udc00"), encodeUtf8("\ufffd"));
});

// Ill-formed sequences: overlong, surrogate, above U+10FFFF, truncated, stray continuation.
const BROKEN = [
  [0xc0, 0x80],
  [0xe0, 0x80, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf5, 0x80],
  [0xe2, 0x82],
  [0xf0, 0x9f, 0x92],
  [0x80, 0x61],
  [0xe2, 0x82, 0x61],
  [0xff],
];

test("decodeUtf8 replaces ill-formed sequences as the platform does", () => {
  const platform = new TextDecoder("utf-8", { ignoreBOM: true });
  for (const broken of BROKEN) {
    const bytes = Uint8Array.from([0x41, ...broken, 0x42]);
    assert.equal(decodeUtf8(bytes), platform.decode(bytes), broken.join(" "));
  }
});
