import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { decodeHandshake, encodeHandshake, isHandshakePrefix } from "../../src/wire/peer/handshake.ts";
import { clientName, makePeerId } from "../../src/wire/peer/peer-id.ts";

const INFOHASH = "0123456789abcdef0123456789abcdef01234567" as Infohash;
const PEER_ID = latin1Bytes("-SL0100-abcdefghijkl");

test("encodeHandshake writes the 68 bytes of BEP 3, and the bits of BEP 5, 6 and 10", () => {
  const all = { infohash: INFOHASH, peerId: PEER_ID, extensions: true, fast: true, dht: true };
  const head = "13426974546f7272656e742070726f746f636f6c";
  assert.equal(toHex(encodeHandshake(all)), `${head}0000000000100005${INFOHASH}${toHex(PEER_ID)}`);
  const none = { ...all, extensions: false, fast: false, dht: false };
  assert.equal(toHex(encodeHandshake(none)), `${head}0000000000000000${INFOHASH}${toHex(PEER_ID)}`);
});

test("decodeHandshake reads back every combination of bits, and ignores unknown bits", () => {
  for (let bits = 0; bits < 8; bits++) {
    const handshake = {
      infohash: INFOHASH,
      peerId: PEER_ID,
      extensions: (bits & 1) !== 0,
      fast: (bits & 2) !== 0,
      dht: (bits & 4) !== 0,
    };
    const bytes = encodeHandshake(handshake);
    bytes[20] = 0xff;
    assert.deepEqual(decodeHandshake(bytes), handshake);
  }
});

test("decodeHandshake refuses another length or protocol", () => {
  const good = encodeHandshake({
    infohash: INFOHASH,
    peerId: PEER_ID,
    extensions: true,
    fast: true,
    dht: false,
  });
  const other = good.slice();
  other[5] = 0x20;
  for (const bytes of [good.subarray(1), new Uint8Array(0), new Uint8Array(69), other]) {
    assert.throws(() => decodeHandshake(bytes), DecodeError);
  }
});

test("isHandshakePrefix is true of every beginning of a handshake, and false from the first wrong byte on", () => {
  const bytes = encodeHandshake({
    infohash: INFOHASH,
    peerId: PEER_ID,
    extensions: true,
    fast: true,
    dht: false,
  });
  for (let length = 0; length <= bytes.length; length++)
    assert.ok(isHandshakePrefix(bytes.subarray(0, length)), `${length}`);
  for (let wrong = 0; wrong < 20; wrong++) {
    const other = bytes.slice();
    other[wrong]! ^= 0x20;
    assert.ok(isHandshakePrefix(other.subarray(0, wrong)));
    assert.equal(isHandshakePrefix(other.subarray(0, wrong + 1)), false);
  }
});

test("makePeerId starts with the client prefix, followed by letters and digits", () => {
  const id = makePeerId(Uint8Array.from({ length: 12 }, (_, i) => i * 23));
  assert.equal(id.length, 20);
  assert.match(latin1Text(id), /^-SL0100-[0-9A-Za-z]{12}$/);
  assert.equal(clientName(id), "Sluice 0.1.0");
});

test("clientName recognizes common peer ids", () => {
  const names: readonly (readonly [string, string])[] = [
    ["-LT2080-xxxxxxxxxxxx", "libtorrent 2.0.8"],
    ["-LT20B0-xxxxxxxxxxxx", "libtorrent 2.0.11"],
    ["-TR3000-xxxxxxxxxxxx", "Transmission 3.00"],
    ["-TR2940-xxxxxxxxxxxx", "Transmission 2.94"],
    ["-TR4040-xxxxxxxxxxxx", "Transmission 4.0.4"],
    ["-qB4520-xxxxxxxxxxxx", "qBittorrent 4.5.2"],
    ["-UT355W-xxxxxxxxxxxx", "uTorrent 3.5.5.32"],
    ["-WW0123-xxxxxxxxxxxx", "WebTorrent 0.1.2.3"],
    ["-ZZ1000-xxxxxxxxxxxx", "ZZ 1.0.0"],
    ["M7-10-2--xxxxxxxxxxx", "BitTorrent 7.10.2"],
    ["A2-1-36-0-xxxxxxxxxx", "aria2 1.36.0"],
    ["\0\0\0\0\0\0\0\0xxxxxxxxxxxx", "unknown"],
    ["<script>alert(1)</sc", "unknown"],
  ];
  for (const [id, name] of names) assert.equal(clientName(latin1Bytes(id)), name, id);
});
