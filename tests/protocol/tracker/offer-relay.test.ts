import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../../src/base/ids.ts";
import { instant } from "../../../src/base/time.ts";
import { OfferRelay } from "../../../src/protocol/tracker/offer-relay.ts";
import { Tracker } from "../../../src/protocol/tracker/tracker.ts";
import { seededRandom } from "../../seeded-random.ts";

const INFO = "abcdefghijklmnopqrst";
const INFOHASH = Buffer.from(INFO, "latin1").toString("hex") as Infohash;
const peerId = (id: number) => `-WW0111-${String(id).padStart(12, "0")}`;
const offers = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    offer_id: `offer ${i}`,
    offer: { type: "offer", sdp: `sdp ${i}`, extra: "left out" },
  }));

/** A relay, and the messages it sends by connection. */
class TestRelay {
  readonly #isTracked = (infohash: Infohash) => infohash === INFOHASH;
  readonly tracker = new Tracker({
    isTracked: this.#isTracked,
    ownAddresses: () => [],
    random: seededRandom(1),
  });
  readonly relay = new OfferRelay(this.tracker, this.#isTracked, seededRandom(5));
  now = 0;

  open(id: number, host = `60.0.0.${id}`): boolean {
    return this.relay.opened(id, { host, isForeign: false });
  }

  /** Passes one message to the relay; returns its outputs by connection, with `close` for a closed one. */
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into members by name.
  message(id: number, message: unknown): [to: number, message: any][] {
    const text = typeof message === "string" ? message : JSON.stringify(message);
    this.relay.received(id, text, instant(this.now));
    const outputs: [number, unknown][] = [];
    for (let output = this.relay.poll(); output; output = this.relay.poll())
      outputs.push([output.to, output.kind === "send" ? JSON.parse(output.text) : "close"]);
    return outputs;
  }

  announce(id: number, more: object = {}) {
    return this.message(id, { action: "announce", info_hash: INFO, peer_id: peerId(id), left: 1, ...more });
  }
}

test("OfferRelay: offers go to other peers of the swarm, one each, and answers back to the offering peer", () => {
  const bench = new TestRelay();
  for (const id of [1, 2, 3]) bench.open(id);
  assert.deepEqual(bench.announce(1, { offers: offers(2) }), [
    [1, { action: "announce", info_hash: INFO, interval: 120, complete: 0, incomplete: 1 }],
  ]);
  bench.announce(2, { left: 0 });
  const [answer, ...given] = bench.announce(3, { offers: offers(5) });
  assert.deepEqual(answer, [
    3,
    { action: "announce", info_hash: INFO, interval: 120, complete: 1, incomplete: 2 },
  ]);
  assert.deepEqual(given.map(([to]) => to).sort(), [1, 2]);
  assert.equal(new Set(given.map(([, { offer_id }]) => offer_id)).size, 2);
  for (const [, message] of given) {
    assert.equal(message.peer_id, peerId(3));
    assert.deepEqual(Object.keys(message.offer), ["type", "sdp"]);
  }
  const reply = { answer: { type: "answer", sdp: "yes" }, offer_id: "offer 0", to_peer_id: peerId(3) };
  assert.deepEqual(bench.announce(1, reply), [
    [
      3,
      {
        action: "announce",
        info_hash: INFO,
        peer_id: peerId(1),
        offer_id: "offer 0",
        answer: { type: "answer", sdp: "yes" },
      },
    ],
  ]);
});

test("OfferRelay: a peer that has left receives no offers and is not counted", () => {
  const bench = new TestRelay();
  for (const id of [1, 2, 3]) bench.open(id);
  for (const id of [1, 2, 3]) bench.announce(id);
  bench.relay.closed(1);
  bench.announce(2, { event: "stopped" });
  const outputs = bench.announce(3, { offers: offers(5) });
  assert.equal(outputs.length, 1);
  assert.equal(outputs[0]![1].incomplete, 1);
  assert.deepEqual(bench.message(3, { action: "scrape", info_hash: INFO }), [
    [3, { action: "scrape", files: { [INFO]: { complete: 0, incomplete: 1, downloaded: 0 } } }],
  ]);
});

test("OfferRelay: refuses a foreign peer id, answers from non-members, and untracked content", () => {
  const bench = new TestRelay();
  for (const id of [1, 2, 3]) bench.open(id);
  bench.announce(1);
  assert.match(bench.announce(2, { peer_id: peerId(1) })[0]![1]["failure reason"], /in use/);
  const answer = { answer: { type: "answer", sdp: "x" }, offer_id: "1", to_peer_id: peerId(1) };
  assert.deepEqual(bench.announce(3, answer), []);
  const [[, refused]] = bench.announce(3, { info_hash: "x".repeat(20) }) as [[number, never]];
  assert.deepEqual(refused, {
    action: "announce",
    info_hash: "x".repeat(20),
    "failure reason": "not tracked here",
  });
});

test("OfferRelay: a peer with a listening port exchanges addresses, and gets no offers", () => {
  const bench = new TestRelay();
  for (const id of [1, 2, 3]) bench.open(id);
  bench.announce(1, { port: 8621, numwant: 50 });
  const [[, response]] = bench.announce(2, { port: 8622, numwant: 50 }) as [[number, { peers: unknown }]];
  assert.deepEqual(response.peers, [{ ip: "60.0.0.1", port: 8621 }]);
  const outputs = bench.announce(3, { offers: offers(3) });
  assert.equal(outputs.length, 1);
  assert.deepEqual([outputs[0]![1].incomplete, outputs[0]![1].peers], [3, undefined]);
});

test("OfferRelay: an engine with a port and offers receives addresses and takes part in the relay", () => {
  const bench = new TestRelay();
  for (const id of [1, 2, 3]) bench.open(id);
  bench.announce(1, { port: 8621, numwant: 50 });
  const [[, response]] = bench.announce(2, { port: 8622, numwant: 50, offers: offers(2) }) as [
    [number, { peers: unknown }],
  ];
  assert.deepEqual(response.peers, [{ ip: "60.0.0.1", port: 8621 }]);
  const [, offered] = bench.announce(3, { offers: offers(3) });
  assert.deepEqual([offered?.[0], offered?.[1].offer_id], [2, "offer 0"]);
});

test("OfferRelay: a malformed message is answered by a failure, the tenth closes the connection", () => {
  const bench = new TestRelay();
  bench.open(1);
  const broken = ["", "[]", "null", "{}", '{"action":"announce"}', '{"action":"scrape","info_hash":[]}', "{"];
  const answers = [...broken, ...broken].slice(0, 10).flatMap((text) => bench.message(1, text));
  assert.equal(answers.filter(([, message]) => message["failure reason"]).length, 10);
  assert.deepEqual(answers.at(-1), [1, "close"]);
});

test("OfferRelay: limits connections per household, swarms per connection, and the request rate", () => {
  const bench = new TestRelay();
  const taken = Array.from({ length: 25 }, (_, id) => bench.open(id, "60.0.0.1")).filter(Boolean);
  assert.equal(taken.length, 20);
  bench.relay.closed(3);
  assert.ok(bench.open(99, "60.0.0.1"));
  const answers = Array.from({ length: 300 }, () => bench.announce(99)[0]![1]["failure reason"]);
  assert.equal(answers.filter((reason) => reason === "too many requests").length, 100);
  for (let id = 0; id < 100; id++) bench.relay.closed(id);
  assert.equal(bench.relay.size, 0);
});
