import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "../../../src/base/bytes.ts";
import { instant } from "../../../src/base/time.ts";
import { udpProtocol } from "../../../src/net/shared-udp.ts";
import { ConnectionIds } from "../../../src/protocol/tracker/connection-ids.ts";
import { sha256 } from "../../../src/runtime/crypto.ts";

const SECRET = new Uint8Array(32).fill(1);
const HOST = "60.0.0.1";

test("ConnectionIds: an id is valid for two to three minutes, at its own address", () => {
  const ids = new ConnectionIds(sha256, SECRET);
  for (const start of [0, 59_999, 60_000, 100_123]) {
    const id = ids.issue(HOST, instant(start));
    assert.equal(id.length, 8);
    assert.ok(ids.isValid(id, HOST, instant(start)));
    assert.ok(ids.isValid(id, HOST, instant(start + 120_000)));
    assert.ok(!ids.isValid(id, HOST, instant(start + 180_000)));
    assert.ok(!ids.isValid(id, "60.0.0.2", instant(start)));
  }
});

test("ConnectionIds: another secret, address or minute gives another id; a changed id is invalid", () => {
  const ids = new ConnectionIds(sha256, SECRET);
  const others = [
    ids.issue(HOST, instant(0)),
    ids.issue(HOST, instant(60_000)),
    ids.issue("60.0.0.2", instant(0)),
    ids.issue("2001:470::1", instant(0)),
    new ConnectionIds(sha256, new Uint8Array(32)).issue(HOST, instant(0)),
  ];
  assert.equal(new Set(others.map(toHex)).size, others.length);
  for (let bit = 0; bit < 64; bit++) {
    const forged = others[0]!.slice();
    forged[bit >> 3]! ^= 1 << (bit & 7);
    assert.ok(!ids.isValid(forged, HOST, instant(0)), `bit ${bit}`);
  }
});

test("ConnectionIds: a datagram that begins with an id is recognised as a tracker request", () => {
  const ids = new ConnectionIds(sha256, SECRET);
  for (let minute = 0; minute < 2000; minute++) {
    const question = new Uint8Array(98);
    question.set(ids.issue(HOST, instant(60_000 * minute)));
    assert.equal(udpProtocol(question), "tracker");
  }
});
