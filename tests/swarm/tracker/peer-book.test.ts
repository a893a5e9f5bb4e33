import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, type PeerAddress } from "../../../src/base/address.ts";
import type { Infohash } from "../../../src/base/ids.ts";
import { randomBelow, seededRandom } from "../../../src/base/random.ts";
import { instant } from "../../../src/base/time.ts";
import { PeerBook } from "../../../src/swarm/tracker/peer-book.ts";

const ONE = "1".repeat(40) as Infohash;
const TWO = "2".repeat(40) as Infohash;
const LIFE_MS = 1000;
const NOW = instant(10_000);
const all = () => true;

const at = (host: string, port = 1): PeerAddress => ({ host, port });
/** The n-th public address. */
const nth = (n: number, port = 1) => at(`60.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`, port);
const texts = (peers: readonly PeerAddress[]) => peers.map(addressText).sort();
const some = (book: PeerBook, infohash = ONE, count = 1000) =>
  book.some(infohash, count, all, seededRandom(1));

test("PeerBook: a swarm's peers are told, each once, and counted; swarms do not mix", () => {
  const book = new PeerBook(LIFE_MS);
  const peers = [at("60.0.0.1"), at("60.0.0.1", 2), at("2001:470::1", 65_535), at("192.168.1.2", 3)];
  for (const peer of [...peers, ...peers]) assert.ok(book.note(ONE, peer, peer.port === 2, NOW));
  book.note(TWO, at("60.0.0.9"), true, NOW);
  assert.deepEqual(texts(some(book)), texts(peers));
  assert.deepEqual(book.counts(ONE), { seeders: 1, leechers: 3, completed: 0 });
  assert.deepEqual(book.counts(TWO), { seeders: 1, leechers: 0, completed: 0 });
  assert.equal(book.size, 5);
});

test("PeerBook: who becomes a seed is counted anew, who leaves is gone, an empty swarm is no more", () => {
  const book = new PeerBook(LIFE_MS);
  book.note(ONE, at("60.0.0.1"), false, NOW);
  book.note(ONE, at("60.0.0.2"), false, NOW);
  book.note(ONE, at("60.0.0.1"), true, NOW);
  assert.equal(book.isSeed(ONE, at("60.0.0.1")), true);
  book.completed(ONE);
  assert.deepEqual(book.counts(ONE), { seeders: 1, leechers: 1, completed: 1 });
  book.remove(ONE, at("60.0.0.1", 9));
  assert.equal(book.size, 2);
  book.remove(ONE, at("60.0.0.1"));
  book.remove(ONE, at("60.0.0.2"));
  assert.deepEqual(book.counts(ONE), { seeders: 0, leechers: 0, completed: 0 });
  assert.deepEqual(some(book), []);
});

test("PeerBook: who is silent for too long is forgotten, who announces stays", () => {
  const book = new PeerBook(LIFE_MS);
  book.note(ONE, at("60.0.0.1"), false, NOW);
  book.note(ONE, at("60.0.0.2"), false, NOW);
  book.note(ONE, at("60.0.0.1"), false, instant(NOW + 900));
  book.expire(instant(NOW + LIFE_MS));
  assert.deepEqual(texts(some(book)), ["60.0.0.1:1"]);
  book.expire(instant(NOW + 900 + LIFE_MS));
  assert.equal(book.size, 0);
});

test("PeerBook: a household has sixteen peers in a swarm; who comes later takes the place of the oldest", () => {
  const book = new PeerBook(LIFE_MS);
  for (let port = 1; port <= 17; port++)
    book.note(ONE, at("2001:470:1:2::1", port), false, instant(NOW + port));
  assert.equal(book.counts(ONE).leechers, 16);
  assert.ok(!texts(some(book)).includes("[2001:470:1:2::1]:1"));
  // The same 64 bits are the same household, others are not.
  book.note(ONE, at("2001:470:1:2:ffff::", 18), false, instant(NOW + 18));
  assert.equal(book.counts(ONE).leechers, 16);
  book.note(ONE, at("2001:470:1:3::1", 18), false, instant(NOW + 18));
  assert.equal(book.counts(ONE).leechers, 17);
});

test("PeerBook: a household has a thousand entries in all; a machine of the home network may have more in a swarm", () => {
  const book = new PeerBook(LIFE_MS);
  const infohash = (n: number) => n.toString(16).padStart(40, "0") as Infohash;
  let taken = 0;
  for (let n = 0; n < 1100; n++) if (book.note(infohash(n), at("60.0.0.1"), false, NOW)) taken++;
  assert.equal(taken, 1000);
  assert.ok(book.note(infohash(2000), at("60.0.0.2"), false, NOW));
  for (let port = 1; port <= 100; port++) book.note(ONE, at("192.168.1.7", port), false, NOW);
  assert.equal(book.counts(ONE).leechers, 100);
});

test("PeerBook: where it is full, who was silent for longest goes", () => {
  const book = new PeerBook(LIFE_MS, 100);
  for (let n = 0; n < 150; n++) book.note(ONE, nth(n), false, instant(NOW + n));
  assert.equal(book.size, 100);
  const left = new Set(texts(some(book)));
  assert.ok(!left.has(addressText(nth(49))) && left.has(addressText(nth(50))));
});

test("PeerBook.some: tells as many as are wanted, only those that fit, all in the end", () => {
  const book = new PeerBook(LIFE_MS);
  for (let n = 0; n < 60; n++) book.note(ONE, nth(n), false, NOW);
  const random = seededRandom(7);
  const seen = new Set<string>();
  for (let round = 0; round < 200; round++) {
    const told = texts(book.some(ONE, 10, all, random));
    assert.equal(new Set(told).size, 10);
    for (const text of told) seen.add(text);
  }
  assert.equal(seen.size, 60);
  const odd = book.some(ONE, 60, ({ host }) => Number(host.split(".")[3]) % 2 === 1, random);
  assert.equal(odd.length, 30);
  assert.deepEqual(book.some(ONE, 0, all, random), []);
});

test("PeerBook: against a plain list, by chance", () => {
  const seed = 42;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const book = new PeerBook(LIFE_MS, 10_000);
  const plain = new Map<string, { at: number; isSeed: boolean }>();
  for (let step = 0; step < 6_000; step++) {
    const now = instant(NOW + step / 10);
    const infohash = random() < 0.5 ? ONE : TWO;
    const peer = nth(randomBelow(random, 3000), 1 + randomBelow(random, 3));
    const key = `${infohash} ${addressText(peer)}`;
    if (random() < 0.2) {
      book.remove(infohash, peer);
      plain.delete(key);
    } else {
      const isSeed = random() < 0.3;
      book.note(infohash, peer, isSeed, now);
      plain.set(key, { at: now, isSeed });
    }
    for (const [each, entry] of plain) if (entry.at + LIFE_MS <= now) plain.delete(each);
    book.expire(now);
    if (step % 200 !== 0) continue;
    assert.equal(book.size, plain.size);
    for (const each of [ONE, TWO]) {
      const entries = [...plain].filter(([text]) => text.startsWith(each));
      const seeders = entries.filter(([, { isSeed }]) => isSeed).length;
      assert.deepEqual(book.counts(each), { seeders, leechers: entries.length - seeders, completed: 0 });
      assert.deepEqual(texts(some(book, each, 10_000)), entries.map(([text]) => text.split(" ")[1]!).sort());
    }
  }
});
