import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes } from "../../src/base/bytes.ts";
import { readDhtNodes } from "../../src/wire/torrent/metainfo.ts";

test("readDhtNodes: reads names and addresses with ports, and skips malformed entries", () => {
  const file =
    "d5:nodesll9:127.0.0.1i6881eel10:2001:db8::i1eel11:a.b.exampleei5el1:xi0eel1:xi65536eel3:a bi1eel1:yi9eeee";
  const wanted = ["127.0.0.1:6881", "[2001:db8::]:1", "y:9"];
  assert.deepEqual(readDhtNodes(latin1Bytes(file)), wanted);
  assert.deepEqual(readDhtNodes(latin1Bytes("de")), []);
  const many = `d5:nodesl${"l1:xi1ee".repeat(50)}ee`;
  assert.equal(readDhtNodes(latin1Bytes(many)).length, 20);
});
