import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { decodeMutableTorrent, encodeHeadRecord } from "../../src/wire/dht/head-record.ts";

const INFOHASH = "61".repeat(20) as Infohash;

test("decodeMutableTorrent: reads ih, ignores other members (BEP 46), and reads a head record", () => {
  const a20 = "a".repeat(20);
  for (const text of [`d2:ih20:${a20}e`, `d1:ai1e2:ih20:${a20}2:zz1:xe`])
    assert.equal(decodeMutableTorrent(latin1Bytes(text)), INFOHASH, text);
  const record = encodeHeadRecord(INFOHASH);
  assert.equal(decodeMutableTorrent(record), INFOHASH);
});

test("decodeMutableTorrent: refuses values without an infohash of 20 bytes", () => {
  for (const text of [
    "",
    "de",
    "le",
    "20:aaaaaaaaaaaaaaaaaaaa",
    "d2:ih19:aaaaaaaaaaaaaaaaaaae",
    "d2:ihi1ee",
    "d2:ih20:aae",
  ])
    assert.throws(() => decodeMutableTorrent(latin1Bytes(text)), DecodeError, text);
});
