import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { decodeCompactPeers, encodeCompactPeers } from "../../src/wire/compact-peers.ts";
import {
  decodePexMessage,
  encodePexMessage,
  PEX_REACHABLE,
  PEX_UPLOAD_ONLY,
} from "../../src/wire/peer/pex-message.ts";

const V4 = { host: "127.0.0.1", port: 6881 };
const V6 = { host: "2001:db8::1", port: 443 };

test("decodeCompactPeers reads both families (BEP 23, 7)", () => {
  assert.deepEqual(decodeCompactPeers(fromHex("7f0000011ae1ffffffff0000")!, 4), [
    V4,
    { host: "255.255.255.255", port: 0 },
  ]);
  assert.deepEqual(decodeCompactPeers(fromHex("20010db800000000000000000000000101bb")!, 6), [V6]);
  assert.deepEqual(decodeCompactPeers(new Uint8Array(0), 4), []);
});

test("decodeCompactPeers refuses a partial entry", () => {
  assert.throws(() => decodeCompactPeers(new Uint8Array(7), 4), DecodeError);
  assert.throws(() => decodeCompactPeers(new Uint8Array(6), 6), DecodeError);
});

test("encodeCompactPeers writes the addresses of one family", () => {
  assert.equal(toHex(encodeCompactPeers([V6, V4], 4)), "7f0000011ae1");
  assert.equal(toHex(encodeCompactPeers([V4, V6], 6)), "20010db800000000000000000000000101bb");
});

test("encodePexMessage and decodePexMessage round trip (BEP 11)", () => {
  const message = {
    added: [
      { address: V4, flags: PEX_UPLOAD_ONLY },
      { address: V6, flags: PEX_REACHABLE },
    ],
    dropped: [{ host: "1.2.3.4", port: 5 }],
  };
  assert.deepEqual(decodePexMessage(encodePexMessage(message)), message);
});

test("decodePexMessage accepts missing flags, unsorted keys and unknown members", () => {
  const bytes = latin1Bytes("d7:dropped0:5:added12:\x01\x02\x03\x04\x00\x05\x01\x02\x03\x04\x00\x001:xi1ee");
  assert.deepEqual(decodePexMessage(bytes), {
    added: [{ address: { host: "1.2.3.4", port: 5 }, flags: 0 }],
    dropped: [],
  });
  assert.deepEqual(decodePexMessage(latin1Bytes("de")), { added: [], dropped: [] });
});

test("decodePexMessage reads at most 50 peers of each list", () => {
  const many = Array.from({ length: 5000 }, (_, i) => ({ host: "1.2.3.4", port: i + 1 }));
  const bytes = encodePexMessage({ added: many.map((address) => ({ address, flags: 0 })), dropped: many });
  const { added, dropped } = decodePexMessage(bytes);
  assert.deepEqual([added.length, dropped.length], [50, 50]);
});

test("decodePexMessage refuses malformed messages", () => {
  for (const text of ["le", "i1e", "d5:added5:abcdee", "d8:dropped67:abcdefge"]) {
    assert.throws(() => decodePexMessage(latin1Bytes(text)), DecodeError, text);
  }
});
