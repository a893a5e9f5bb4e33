import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../../src/base/bytes.ts";
import { instant } from "../../../src/base/time.ts";
import { udpProtocol } from "../../../src/engine/reach/shared-udp.ts";
import { sha256 } from "../../../src/runtime/crypto.ts";
import { ConnectionIds } from "../../../src/swarm/tracker/connection-ids.ts";

const SECRET = new Uint8Array(32).fill(1);
const HOST = "60.0.0.1";

test("ConnectionIds: an id holds for two minutes at its own address, and for no more than three", () => {
  const ids = new ConnectionIds(sha256, SECRET);
  for (const start of [0, 59_999, 60_000, 100_123]) {
    const id = ids.give(HOST, instant(start));
    assert.equal(id.length, 8);
    assert.ok(ids.isOurs(id, HOST, instant(start)));
    assert.ok(ids.isOurs(id, HOST, instant(start + 120_000)));
    assert.ok(!ids.isOurs(id, HOST, instant(start + 180_000)));
    assert.ok(!ids.isOurs(id, "60.0.0.2", instant(start)));
  }
});

test("ConnectionIds: another secret, address or minute gives another id; a changed one is not ours", () => {
  const ids = new ConnectionIds(sha256, SECRET);
  const others = [
    ids.give(HOST, instant(0)),
    ids.give(HOST, instant(60_000)),
    ids.give("60.0.0.2", instant(0)),
    ids.give("2001:470::1", instant(0)),
    new ConnectionIds(sha256, new Uint8Array(32)).give(HOST, instant(0)),
  ];
  assert.equal(new Set(others.map(toHex)).size, others.length);
  for (let bit = 0; bit < 64; bit++) {
    const forged = others[0]!.slice();
    forged[bit >> 3]! ^= 1 << (bit & 7);
    assert.ok(!ids.isOurs(forged, HOST, instant(0)), `bit ${bit}`);
  }
});

test("ConnectionIds: a question that begins with one is taken for nothing but a tracker's", () => {
  const ids = new ConnectionIds(sha256, SECRET);
  for (let minute = 0; minute < 2000; minute++) {
    const question = new Uint8Array(98);
    question.set(ids.give(HOST, instant(60_000 * minute)));
    assert.equal(udpProtocol(question), "tracker");
  }
});
