import assert from "node:assert/strict";
import { test } from "node:test";
import { infohashOf } from "../../../src/base/ids.ts";
import { allowedFastCount, allowedFastSet } from "../../../src/protocol/swarm/allowed-fast.ts";
import { makeContent, ScriptedSwarm, sha1 } from "./scripted.ts";

const infohash = infohashOf(new Uint8Array(20).fill(0xaa));

test("allowedFastSet: the example of BEP 6", () => {
  const nine = [1059, 431, 808, 1217, 287, 376, 1188, 353, 508];
  assert.deepEqual(allowedFastSet("80.4.4.200", infohash, 1313, 7, sha1), nine.slice(0, 7));
  assert.deepEqual(allowedFastSet("80.4.4.200", infohash, 1313, 9, sha1), nine);
  assert.deepEqual(allowedFastSet("80.4.4.1", infohash, 1313, 9, sha1), nine, "the same for the whole /24");
});

test("allowedFastSet: returns at most all pieces, and none for IPv6", () => {
  assert.deepEqual(allowedFastSet("80.4.4.200", infohash, 3, 10, sha1).sort(), [0, 1, 2]);
  assert.deepEqual(allowedFastSet("2001:db8::1", infohash, 100, 10, sha1), []);
});

test("allowedFastCount: ten pieces, fewer if pieces are large", () => {
  assert.equal(allowedFastCount(1000, 256 * 1024), 10);
  assert.equal(allowedFastCount(1000, 2 * 1024 * 1024), 2);
  assert.equal(allowedFastCount(1000, 16 * 1024 * 1024), 1);
  assert.equal(allowedFastCount(4, 16 * 1024), 4);
});

test("Swarm sends a choked peer its allowed fast pieces and no others (BEP 6)", () => {
  const content = makeContent(40, 1);
  const it = new ScriptedSwarm(content, { held: Array(40).keys() });
  const peer = it.peer();
  peer.send((writer) => writer.haveNone());
  const allowed = allowedFastSet("127.0.0.1", it.infohash, 40, 10, sha1);
  assert.deepEqual(peer.allowed, allowed);
  const other = Array.from({ length: 40 }, (_, i) => i).find((piece) => !allowed.includes(piece))!;
  assert.ok(!peer.received.includes("unchoke"));
  peer.send((writer) => {
    writer.request(allowed[0]!, 0, 16_384);
    writer.request(other, 0, 16_384);
  });
  const read = it.outputs.filter((output) => output.kind === "read");
  assert.deepEqual(
    read.map(({ piece }) => piece),
    [allowed[0]],
  );
  assert.deepEqual(peer.rejected, [{ piece: other, begin: 0, length: 16_384 }]);
});

test("Swarm sends a choked peer each allowed fast piece at most twice", () => {
  const content = makeContent(40, 1);
  const it = new ScriptedSwarm(content, { held: Array(40).keys() });
  const peer = it.peer();
  peer.send((writer) => writer.haveNone());
  for (let i = 0; i < 30; i++) {
    peer.send((writer) => writer.request(peer.allowed[i % 10]!, 0, 16_384));
    for (const output of it.outputs.splice(0)) {
      if (output.kind === "read")
        it.input({ ...output, kind: "block", bytes: new Uint8Array(output.length) });
    }
    it.input({ kind: "drained", connection: peer.connection });
  }
  assert.equal(peer.blocks.length, 20);
  assert.equal(peer.rejected.length, 10);
});
