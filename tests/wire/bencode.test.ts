import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { type BencodeValue, decodeBencode, decodeBencodePrefix } from "../../src/wire/bencode.ts";
import { bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import type { BencodeLimits } from "../../src/wire/bencode-scan.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";

const decode = (text: string, limits?: BencodeLimits) => plain(decodeBencode(latin1Bytes(text), limits));

/** Converts byte strings to text and dictionaries to objects. */
function plain(value: BencodeValue): unknown {
  if (value instanceof Uint8Array) return latin1Text(value);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
  return Array.isArray(value) ? value.map(plain) : value;
}

// The examples of BEP 3, and edge cases.
const GOOD: readonly (readonly [string, unknown])[] = [
  ["4:spam", "spam"],
  ["0:", ""],
  ["i3e", 3],
  ["i-3e", -3],
  ["i0e", 0],
  ["i9007199254740991e", Number.MAX_SAFE_INTEGER],
  ["i-9007199254740991e", Number.MIN_SAFE_INTEGER],
  ["l4:spam4:eggse", ["spam", "eggs"]],
  ["le", []],
  ["de", {}],
  ["d3:cow3:moo4:spam4:eggse", { cow: "moo", spam: "eggs" }],
  ["d4:spaml1:a1:bee", { spam: ["a", "b"] }],
  ["d0:i1e1:\x00i2e1:ai3e2:aai4e1:\xffi5ee", { "": 1, "\0": 2, a: 3, aa: 4, "\xff": 5 }],
];

test("decodeBencode reads the examples of BEP 3", () => {
  for (const [text, value] of GOOD) assert.deepEqual(decode(text), value, text);
});

test("encodeBencode writes what decodeBencode read", () => {
  for (const [text] of GOOD)
    assert.equal(latin1Text(encodeBencode(decodeBencode(latin1Bytes(text)) as never)), text);
});

// Input, offset of the error, message.
const BAD: readonly (readonly [string, number, RegExp])[] = [
  ["", 0, /ends inside/],
  ["e", 0, /expected a value/],
  ["x", 0, /expected a value/],
  ["-3:abc", 0, /expected a value/],
  ["i007e", 0, /leading zero, or negative zero/],
  ["i-0e", 0, /leading zero, or negative zero/],
  ["i00e", 0, /leading zero, or negative zero/],
  ["i-01e", 0, /leading zero, or negative zero/],
  ["ie", 1, /expected digits/],
  ["i-e", 2, /expected digits/],
  ["i+1e", 1, /expected digits/],
  ["i1.5e", 2, /expected digits/],
  ["i1", 2, /expected digits/],
  ["i9007199254740992e", 0, /above 2\^53/],
  ["i99999999999999999999e", 0, /above 2\^53/],
  ["03:abc", 0, /leading zero/],
  ["00:", 0, /leading zero/],
  ["5:abc", 0, /longer than the input/],
  ["99999999999999999999:a", 0, /longer than the input/],
  ["3abc", 1, /expected `:`/],
  ["1", 1, /expected `:`/],
  ["l-3:", 1, /expected a value/],
  ["d-3:e", 1, /expected a value/],
  ["l", 1, /ends inside/],
  ["li1e", 4, /ends inside/],
  ["d1:a", 4, /ends inside/],
  ["d1:ae", 4, /without a value/],
  ["di1ei2ee", 1, /expected a value/],
  ["d1:bi1e1:ai2ee", 7, /not sorted/],
  ["d1:ai1e1:ai2ee", 7, /duplicate key/],
  ["i1ei2e", 3, /after the end of the value/],
  ["dee", 2, /after the end of the value/],
  ["4:spam\n", 6, /after the end of the value/],
];

test("decodeBencode refuses every non-canonical form with its offset", () => {
  for (const [text, offset, message] of BAD) {
    assert.throws(
      () => decode(text),
      (error) => error instanceof DecodeError && error.offset === offset && message.test(error.message),
      JSON.stringify(text),
    );
  }
});

test("decodeBencode accepts unsorted keys with lenientKeyOrder, never duplicate keys", () => {
  assert.deepEqual(decode("d1:bi1e1:ai2ee", { lenientKeyOrder: true }), { b: 1, a: 2 });
  assert.throws(() => decode("d1:bi1e1:ai2e1:bi3ee", { lenientKeyOrder: true }), /duplicate key/);
  assert.throws(() => decode("d1:ai1e1:ai2ee", { lenientKeyOrder: true }), /duplicate key/);
});

test("decodeBencode limits nesting", () => {
  const nested = (depth: number) => `${"l".repeat(depth)}${"e".repeat(depth)}`;
  decode(nested(100));
  assert.throws(() => decode(nested(101)), /deeper than 100/);
  assert.throws(() => decode(nested(1_000_000)), /deeper than 100/);
  assert.throws(() => decode(nested(4), { maxDepth: 3 }), /deeper than 3/);
});

test("decodeBencode limits the number of keys and values", () => {
  assert.throws(() => decode(`l${"de".repeat(32_000)}e`), /more than \d+ keys and values/);
  assert.throws(() => decode("l1:a1:be", { maxTokens: 2 }), /more than 2/);
  assert.deepEqual(decode("l1:a1:be", { maxTokens: 3 }), ["a", "b"]);
});

test("viewBencode reads a very dense file list", () => {
  const files = "d6:lengthi1e4:pathl1:aee".repeat(100_000);
  assert.equal(viewBencode(latin1Bytes(`l${files}e`)).itemCount(), 100_000);
});

test("__proto__ is an ordinary key", () => {
  const dict = decodeBencode(latin1Bytes("d9:__proto__d1:ai1eee")) as ReadonlyMap<string, BencodeValue>;
  assert.deepEqual([...dict.keys()], ["__proto__"]);
  assert.equal(({} as { a?: number }).a, undefined);
});

test("decodeBencodePrefix returns the end of the value", () => {
  const { value, end } = decodeBencodePrefix(latin1Bytes("d1:ai1eeXYZ"));
  assert.deepEqual(plain(value), { a: 1 });
  assert.equal(end, 8);
});

test("BencodeView.range covers a value of the outermost dictionary", () => {
  const bytes = latin1Bytes("d1:ad4:infoi7ee4:infod1:xi1eee");
  const span = viewBencode(bytes).get("info")!.range;
  assert.equal(latin1Text(bytes.subarray(span.start, span.end)), "d1:xi1ee");
  assert.equal(viewBencode(bytes).get("none"), undefined);
  assert.equal(viewBencode(latin1Bytes("le")).get("info"), undefined);
});

test("encodeBencode sorts keys by their bytes and omits undefined members", () => {
  const dict = bencodeDict({ b: 1, a: "x", aa: [new Uint8Array([1])], gone: undefined, "\xff": 0 });
  assert.equal(latin1Text(encodeBencode(dict)), "d1:a1:x2:aal1:\x01e1:bi1e1:\xffi0ee");
});
