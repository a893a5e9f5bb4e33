import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { randomBelow } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import { PeerTable } from "../../../src/protocol/tracker/peer-table.ts";
import { seededRandom } from "../../seeded-random.ts";

const ONE = "1".repeat(40) as Infohash;
const TWO = "2".repeat(40) as Infohash;
const LIFE_MS = 1000;
const NOW = instant(10_000);
const all = () => true;

const at = (host: string, port = 1): PeerAddress => ({ host, port });
/** The n-th public address. */
const nth = (n: number, port = 1) => at(`60.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`, port);
const texts = (peers: readonly PeerAddress[]) => peers.map(addressText).sort();
const some = (table: PeerTable, infohash = ONE, count = 1000) =>
  table.sample(infohash, count, all, seededRandom(1));

test("PeerTable: returns and counts the peers of a swarm, each once, and no peers of others", () => {
  const table = new PeerTable(LIFE_MS);
  const peers = [at("60.0.0.1"), at("60.0.0.1", 2), at("2001:470::1", 65_535), at("192.168.1.2", 3)];
  for (const peer of [...peers, ...peers]) assert.ok(table.add(ONE, peer, peer.port === 2, NOW));
  table.add(TWO, at("60.0.0.9"), true, NOW);
  assert.deepEqual(texts(some(table)), texts(peers));
  assert.deepEqual(table.counts(ONE), { seeders: 1, leechers: 3, completed: 0 });
  assert.deepEqual(table.counts(TWO), { seeders: 1, leechers: 0, completed: 0 });
  assert.equal(table.size, 5);
});

test("PeerTable: counts new seeds, removes peers that leave, and drops empty swarms", () => {
  const table = new PeerTable(LIFE_MS);
  table.add(ONE, at("60.0.0.1"), false, NOW);
  table.add(ONE, at("60.0.0.2"), false, NOW);
  table.add(ONE, at("60.0.0.1"), true, NOW);
  assert.equal(table.isSeed(ONE, at("60.0.0.1")), true);
  table.completed(ONE);
  assert.deepEqual(table.counts(ONE), { seeders: 1, leechers: 1, completed: 1 });
  table.remove(ONE, at("60.0.0.1", 9));
  assert.equal(table.size, 2);
  table.remove(ONE, at("60.0.0.1"));
  table.remove(ONE, at("60.0.0.2"));
  assert.deepEqual(table.counts(ONE), { seeders: 0, leechers: 0, completed: 0 });
  assert.deepEqual(some(table), []);
});

test("PeerTable: peers expire unless they announce again", () => {
  const table = new PeerTable(LIFE_MS);
  table.add(ONE, at("60.0.0.1"), false, NOW);
  table.add(ONE, at("60.0.0.2"), false, NOW);
  table.add(ONE, at("60.0.0.1"), false, instant(NOW + 900));
  table.expire(instant(NOW + LIFE_MS));
  assert.deepEqual(texts(some(table)), ["60.0.0.1:1"]);
  table.expire(instant(NOW + 900 + LIFE_MS));
  assert.equal(table.size, 0);
});

test("PeerTable: a household has sixteen peers in a swarm; a further one replaces the oldest", () => {
  const table = new PeerTable(LIFE_MS);
  for (let port = 1; port <= 17; port++)
    table.add(ONE, at("2001:470:1:2::1", port), false, instant(NOW + port));
  assert.equal(table.counts(ONE).leechers, 16);
  assert.ok(!texts(some(table)).includes("[2001:470:1:2::1]:1"));
  // The same 64 bits are the same household, others are not.
  table.add(ONE, at("2001:470:1:2:ffff::", 18), false, instant(NOW + 18));
  assert.equal(table.counts(ONE).leechers, 16);
  table.add(ONE, at("2001:470:1:3::1", 18), false, instant(NOW + 18));
  assert.equal(table.counts(ONE).leechers, 17);
});

test("PeerTable: a household has a thousand peers in total; a local machine may have more in a swarm", () => {
  const table = new PeerTable(LIFE_MS);
  const infohash = (n: number) => n.toString(16).padStart(40, "0") as Infohash;
  let taken = 0;
  for (let n = 0; n < 1100; n++) if (table.add(infohash(n), at("60.0.0.1"), false, NOW)) taken++;
  assert.equal(taken, 1000);
  assert.ok(table.add(infohash(2000), at("60.0.0.2"), false, NOW));
  for (let port = 1; port <= 100; port++) table.add(ONE, at("192.168.1.7", port), false, NOW);
  assert.equal(table.counts(ONE).leechers, 100);
});

test("PeerTable: a full table drops the peer that announced least recently", () => {
  const table = new PeerTable(LIFE_MS, 100);
  for (let n = 0; n < 150; n++) table.add(ONE, nth(n), false, instant(NOW + n));
  assert.equal(table.size, 100);
  const left = new Set(texts(some(table)));
  assert.ok(!left.has(addressText(nth(49))) && left.has(addressText(nth(50))));
});

test("PeerTable.sample: returns as many fitting peers as requested, and all of them over time", () => {
  const table = new PeerTable(LIFE_MS);
  for (let n = 0; n < 60; n++) table.add(ONE, nth(n), false, NOW);
  const random = seededRandom(7);
  const seen = new Set<string>();
  for (let round = 0; round < 200; round++) {
    const sampled = texts(table.sample(ONE, 10, all, random));
    assert.equal(new Set(sampled).size, 10);
    for (const text of sampled) seen.add(text);
  }
  assert.equal(seen.size, 60);
  const odd = table.sample(ONE, 60, ({ host }) => Number(host.split(".")[3]) % 2 === 1, random);
  assert.equal(odd.length, 30);
  assert.deepEqual(table.sample(ONE, 0, all, random), []);
});

test("PeerTable: behaves as a plain list in random sequences", () => {
  const seed = 42;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const table = new PeerTable(LIFE_MS, 10_000);
  const plain = new Map<string, { at: number; isSeed: boolean }>();
  for (let step = 0; step < 6_000; step++) {
    const now = instant(NOW + step / 10);
    const infohash = random() < 0.5 ? ONE : TWO;
    const peer = nth(randomBelow(random, 3000), 1 + randomBelow(random, 3));
    const key = `${infohash} ${addressText(peer)}`;
    if (random() < 0.2) {
      table.remove(infohash, peer);
      plain.delete(key);
    } else {
      const isSeed = random() < 0.3;
      table.add(infohash, peer, isSeed, now);
      plain.set(key, { at: now, isSeed });
    }
    for (const [each, entry] of plain) if (entry.at + LIFE_MS <= now) plain.delete(each);
    table.expire(now);
    if (step % 200 !== 0) continue;
    assert.equal(table.size, plain.size);
    for (const each of [ONE, TWO]) {
      const entries = [...plain].filter(([text]) => text.startsWith(each));
      const seeders = entries.filter(([, { isSeed }]) => isSeed).length;
      assert.deepEqual(table.counts(each), { seeders, leechers: entries.length - seeders, completed: 0 });
      assert.deepEqual(texts(some(table, each, 10_000)), entries.map(([text]) => text.split(" ")[1]!).sort());
    }
  }
});
