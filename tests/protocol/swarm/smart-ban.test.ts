import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type BlockSender, SmartBan } from "../../../src/protocol/swarm/smart-ban.ts";

const BLOCK = 16 * 1024;
const sha1 = (bytes: Uint8Array) => new Uint8Array(createHash("sha1").update(bytes).digest());
const make = () => new SmartBan(sha1);
const sender = (connection: number): BlockSender => ({
  connection,
  address: { host: "8.8.8.8", port: connection },
});
const [alice, bob, carol, dave] = [sender(1), sender(3), sender(5), sender(7)];

/** A piece of four blocks; the blocks listed in `bad` are wrong, in a way that depends on `taint`. */
function piece(bad: number[] = [], taint = 0xff): Uint8Array {
  const bytes = new Uint8Array(4 * BLOCK).fill(7);
  for (const block of bad) bytes[block * BLOCK + 5]! ^= taint;
  return bytes;
}

test("SmartBan.failed: a sole sender is named at once", () => {
  assert.deepEqual(make().failed(0, piece([1]), [alice, alice, alice, alice]), [alice]);
});

test("SmartBan.failed: blocks of unknown origin clear the only known sender", () => {
  assert.deepEqual(make().failed(0, piece([1]), [alice, alice, undefined, alice]), []);
});

test("SmartBan.passed: names exactly the senders of differing blocks", () => {
  const ban = make();
  assert.deepEqual(ban.failed(0, piece([1, 3]), [alice, bob, carol, dave]), []);
  assert.ok(ban.isSuspect(0));
  const liars = ban.passed(0, piece(), [carol, carol, carol, carol]);
  assert.deepEqual(liars, [bob, dave]);
  assert.ok(!ban.isSuspect(0));
});

test("SmartBan.passed: works over several failed attempts", () => {
  const ban = make();
  ban.failed(0, piece([0]), [alice, bob, bob, bob]);
  ban.failed(0, piece([2]), [bob, bob, carol, dave]);
  assert.deepEqual(ban.passed(0, piece(), [dave, dave, dave, dave]), [alice, carol]);
});

test("SmartBan.failed: two versions of a block from one sender are proof", () => {
  const ban = make();
  ban.failed(0, piece([0], 1), [alice, bob, bob, bob]);
  assert.deepEqual(ban.failed(0, piece([0], 2), [alice, bob, carol, carol]), [alice]);
});

test("SmartBan.failed: the same wrong block again is not a second version", () => {
  const ban = make();
  ban.failed(0, piece([0]), [alice, bob, bob, bob]);
  assert.deepEqual(ban.failed(0, piece([0]), [alice, bob, carol, carol]), []);
  assert.deepEqual(ban.passed(0, piece(), [bob, bob, bob, bob]), [alice]);
});

test("SmartBan.passed: names no peer for a piece that never failed", () => {
  assert.deepEqual(make().passed(0, piece(), [alice, bob, carol, dave]), []);
});

test("SmartBan.isOnParole: from a failed piece until the peer sends a whole valid piece", () => {
  const ban = make();
  assert.ok(!ban.isOnParole(1));
  ban.failed(0, piece([0]), [alice, bob, bob, bob]);
  assert.ok(ban.isOnParole(1) && ban.isOnParole(3));
  ban.passed(1, piece(), [bob, bob, bob, bob]);
  assert.ok(!ban.isOnParole(3));
  ban.passed(2, piece(), [alice, carol, carol, carol]);
  assert.ok(ban.isOnParole(1), "a share of a right piece proves nothing");
});

test("SmartBan.bestFor: peers without failures before others", () => {
  const ban = make();
  ban.failed(0, piece([0]), [alice, bob, bob, bob]);
  assert.equal(ban.bestFor([1, 3, 5]), 5);
  assert.equal(ban.bestFor([]), undefined);
});

test("SmartBan: in random swarms with half of the peers poisoning, no innocent peer is named", () => {
  let state = 12345;
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state / 2 ** 32;
  };
  const ban = make();
  const all = Array.from({ length: 20 }, (_, i) => sender(2 * i));
  const banned = new Set<BlockSender>();
  for (let round = 0; round < 2000; round++) {
    const able = all.filter((each) => !banned.has(each));
    const senders = [0, 1, 2, 3].map(() => able[Math.floor(random() * able.length)]!);
    const bad = [0, 1, 2, 3].filter((i) => all.indexOf(senders[i]!) < 10 && random() < 0.5);
    const bytes = piece(bad, 1 + Math.floor(random() * 255));
    const at = round % 8;
    const liars = bad.length > 0 ? ban.failed(at, bytes, senders) : ban.passed(at, bytes, senders);
    for (const culprit of liars) {
      assert.ok(all.indexOf(culprit) < 10, "an innocent peer was named");
      banned.add(culprit);
    }
  }
  assert.equal(banned.size, 10);
});

test("SmartBan.failed: forgets the oldest suspect pieces beyond its limit", () => {
  const ban = make();
  for (let at = 0; at < 100; at++) ban.failed(at, piece([0]), [alice, bob, bob, bob]);
  assert.ok(!ban.isSuspect(67));
  assert.ok(ban.isSuspect(68));
  assert.deepEqual(ban.passed(0, piece(), [carol, carol, carol, carol]), [], "forgotten is acquitted");
  assert.deepEqual(ban.passed(99, piece(), [carol, carol, carol, carol]), [alice]);
});

test("SmartBan.isAlarmed: from a failed piece until 64 valid ones", () => {
  const ban = make();
  assert.ok(!ban.isAlarmed);
  ban.failed(0, piece([0]), [alice, bob, bob, bob]);
  for (let at = 1; at <= 64; at++) {
    assert.ok(ban.isAlarmed);
    ban.passed(at, piece(), [carol, dave, dave, dave]);
  }
  assert.ok(!ban.isAlarmed);
});
