import assert from "node:assert/strict";
import { test } from "node:test";
import { type Infohash, infohashBytes } from "../../../src/base/ids.ts";
import { InfohashIndex } from "../../../src/protocol/mse/infohash-index.ts";
import { req2Hash } from "../../../src/wire/peer/mse.ts";
import { sha1 } from "./handshake-pair.ts";

test("InfohashIndex.find: finds current infohashes, and hashes each once", () => {
  const have = new Set(Array.from({ length: 50 }, (_, i) => i.toString(16).padStart(40, "0") as Infohash));
  let hashed = 0;
  const index = new InfohashIndex(
    () => have,
    (bytes) => {
      hashed++;
      return sha1(bytes);
    },
  );
  for (const infohash of have) {
    assert.deepEqual(index.find(req2Hash(infohashBytes(infohash), sha1)), infohashBytes(infohash));
  }
  for (let i = 0; i < 100; i++) assert.equal(index.find(new Uint8Array(20).fill(i)), undefined);
  assert.equal(hashed, have.size);
  const [gone] = have;
  have.delete(gone!);
  assert.equal(index.find(req2Hash(infohashBytes(gone!), sha1)), undefined);
});
