import assert from "node:assert/strict";
import { test } from "node:test";
import { runtime } from "#runtime";
import { fromHex, latin1Bytes } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { headRecord } from "../../src/live/broadcast/broadcast-content.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";
import { isSignedItem } from "../../src/wire/dht/item.ts";
import type { LiveTransportFile } from "../../src/wire/live/transport-file.ts";

test("headRecord: is signed with the stream's key, and contains the infohash", () => {
  const { publicKey, sign } = runtime.ed25519Key(new Uint8Array(32).fill(8));
  const infohash = "ab".repeat(20) as Infohash;
  const file = { infohash, info: { publicKey } } as unknown as LiveTransportFile;
  const item = headRecord(file, sign, 1_700_000_000.9);
  assert.equal(item.sequence, 1_700_000_000);
  assert.deepEqual(item.salt, latin1Bytes("live"));
  assert.ok(isSignedItem(item.value, item, runtime.ed25519Verifier));
  assert.deepEqual(viewBencode(item.value).get("ih")?.bytes(), fromHex(infohash));
});
