import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import {
  decodeExtensionHandshake,
  encodeExtensionHandshake,
} from "../../src/wire/peer/extension-handshake.ts";
import { decodeMetadataMessage, encodeMetadataMessage } from "../../src/wire/peer/metadata-message.ts";

const handshake = (text: string) => decodeExtensionHandshake(latin1Bytes(text));

test("decodeExtensionHandshake reads the example of BEP 10", () => {
  const text = "d1:md11:LT_metadatai1e6:\xb5T_PEXi2ee1:pi6881e1:v13:\xc2\xb5Torrent 1.2e";
  assert.deepEqual(handshake(text), {
    messages: new Map([
      ["LT_metadata", 1],
      ["\xb5T_PEX", 2],
    ]),
    listenPort: 6881,
    version: "µTorrent 1.2",
  });
});

test("encodeExtensionHandshake writes what decodeExtensionHandshake reads", () => {
  const full = {
    messages: new Map([
      ["ut_metadata", 3],
      ["ut_pex", 0],
    ]),
    version: "Sluice 0.1.0",
    listenPort: 6881,
    requestQueue: 500,
    metadataBytes: 31_235,
    yourAddress: "2001:db8::1",
    uploadOnly: true,
  };
  for (const value of [full, { messages: new Map() }, { messages: new Map(), uploadOnly: false }]) {
    assert.deepEqual(decodeExtensionHandshake(encodeExtensionHandshake(value)), value);
  }
  const text = latin1Text(
    encodeExtensionHandshake({ messages: new Map([["ut_pex", 1]]), yourAddress: "1.2.3.4" }),
  );
  assert.equal(text, "d1:md6:ut_pexi1ee6:yourip4:\x01\x02\x03\x04e");
});

test("decodeExtensionHandshake accepts unsorted keys and ignores malformed members", () => {
  assert.deepEqual(handshake("d1:v3:abc1:mdee"), { messages: new Map(), version: "abc" });
  const broken = "d1:md1:ai256e1:bi-1e1:c0:1:di5ee13:metadata_sizei-1e1:pi65536e4:reqqle6:yourip3:abc1:vi1ee";
  assert.deepEqual(handshake(broken), { messages: new Map([["d", 5]]) });
  assert.deepEqual(handshake("d1:m0:e"), { messages: new Map() });
});

test("decodeExtensionHandshake removes control characters from a version and cuts a long one", () => {
  assert.equal(handshake("d1:v5:a\x1b[\nbe").version, "a[b");
  assert.equal(handshake(`d1:v500:${"x".repeat(500)}e`).version, "x".repeat(64));
});

test("decodeExtensionHandshake refuses other values than dictionaries, and hundreds of extensions", () => {
  for (const text of ["", "le", "i1e", "d1:md", "d1:mdeeX"])
    assert.throws(() => handshake(text), DecodeError);
  const many = Array.from({ length: 100 }, (_, i) => `3:${100 + i}i1e`).join("");
  assert.throws(() => handshake(`d1:md${many}ee`), /more than 64 extensions/);
});

const metadata = (text: string) => decodeMetadataMessage(latin1Bytes(text));

test("decodeMetadataMessage reads the examples of BEP 9", () => {
  assert.deepEqual(metadata("d8:msg_typei0e5:piecei0ee"), { kind: "request", piece: 0 });
  assert.deepEqual(metadata("d8:msg_typei2e5:piecei0ee"), { kind: "reject", piece: 0 });
  const data = metadata(`d8:msg_typei1e5:piecei1e10:total_sizei16389ee${"abcde"}`);
  assert.deepEqual(data, { kind: "data", piece: 1, totalBytes: 16_389, bytes: latin1Bytes("abcde") });
});

test("encodeMetadataMessage writes what decodeMetadataMessage reads", () => {
  const messages = [
    { kind: "request", piece: 3 },
    { kind: "reject", piece: 3 },
    { kind: "data", piece: 0, totalBytes: 20_000, bytes: new Uint8Array(16_384).fill(9) },
    { kind: "data", piece: 1, totalBytes: 20_000, bytes: new Uint8Array(3616).fill(9) },
  ] as const;
  for (const message of messages)
    assert.deepEqual(decodeMetadataMessage(encodeMetadataMessage(message)), message);
});

test("decodeMetadataMessage ignores unknown message types (BEP 9)", () => {
  assert.equal(metadata("d8:msg_typei3e5:piecei0ee"), undefined);
  assert.equal(metadata("d8:msg_typei-1ee"), undefined);
});

test("decodeMetadataMessage refuses data of the wrong length for its piece", () => {
  const bad = [
    "",
    "de",
    "d5:piecei0ee",
    "d8:msg_typei0ee",
    "d8:msg_typei0e5:piecei-1ee",
    "d8:msg_type1:05:piecei0ee",
    "d8:msg_typei1e5:piecei0eeabc",
    "d8:msg_typei1e5:piecei0e10:total_sizei0ee",
    "d8:msg_typei1e5:piecei0e10:total_sizei4eeabc",
    "d8:msg_typei1e5:piecei0e10:total_sizei2eeabc",
    "d8:msg_typei1e5:piecei1e10:total_sizei5eeabc",
    `d8:msg_typei1e5:piecei0e10:total_sizei99999ee${"x".repeat(16_385)}`,
  ];
  for (const text of bad) assert.throws(() => metadata(text), DecodeError, text.slice(0, 60));
});
