import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { DecodeError } from "../../../src/base/errors.ts";
import type { ContentId, Infohash } from "../../../src/base/ids.ts";
import { headRecord } from "../../../src/engine/live/head-record.ts";
import { isSignedItem } from "../../../src/wire/dht-item.ts";
import { decodeHeadRecord } from "../../../src/wire/live-head-record.ts";
import type { LiveTransportFile } from "../../../src/wire/live-transport.ts";

test("headRecord: is signed by the stream's key, and says where the stream is", () => {
  const { publicKey, sign } = runtime.ed25519Key(new Uint8Array(32).fill(8));
  const infohash = "ab".repeat(20) as Infohash;
  const contentId = "cd".repeat(20) as ContentId;
  const file = { infohash, contentId, info: { publicKey } } as LiveTransportFile;
  const item = headRecord(file, sign, 1_700_000_000.9);
  assert.equal(item.sequence, 1_700_000_000);
  assert.deepEqual(item.salt, latin1Bytes("live"));
  assert.ok(isSignedItem(item.value, item, runtime.ed25519Verifier));
  assert.deepEqual(decodeHeadRecord(item.value), { infohash, contentId });
  for (const text of ["", "de", "d3:cid20:aaaaaaaaaaaaaaaaaaaae", "d3:cid2:aa2:ih2:aae"])
    assert.throws(() => decodeHeadRecord(latin1Bytes(text)), DecodeError);
});
