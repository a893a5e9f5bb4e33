import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Text } from "../../src/base/bytes.ts";
import { type Infohash, infohashBytes } from "../../src/base/ids.ts";
import type { WebRtcSignaling } from "../../src/net/contract.ts";
import { createWsTrackers, type WsTrackersRuntime } from "../../src/net/ws-tracker-client.ts";
import type { TextSocketHandlers, WebSocketRequest } from "../../src/runtime/contract.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import type { Offer } from "../../src/wire/tracker/server-ws.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { announceRequest } from "../parts/announce-request.ts";

const ONE = "1".repeat(40) as Infohash;
const TWO = "2".repeat(40) as Infohash;
const HOST = "60.0.0.1";
const URL_TEXT = "wss://t.example/announce";

const binary = (infohash: Infohash) => latin1Text(infohashBytes(infohash));
const US = { peerId: new Uint8Array(20).fill(0xf1), port: 8621, uploaded: 1, downloaded: 2, left: 3, key: 7 };
const request = (infohash: Infohash, more: Partial<AnnounceRequest> = {}) =>
  announceRequest(URL_TEXT, { ...US, infohash, ...more });

/** An opened connection. */
interface Opened {
  readonly request: WebSocketRequest;
  readonly handlers: TextSocketHandlers;
  // biome-ignore lint/suspicious/noExplicitAny: the tests look into members by name.
  readonly sent: any[];
  isClosed: boolean;
}

/** A client with fake WebSocket trackers. */
class Bench {
  readonly clock = new FakeClock();
  readonly opened: Opened[] = [];
  /** If set, further connections fail. */
  problem: string | undefined;
  /** The tracker's response to each message; none unless set. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  answer: (message: any) => unknown = () => undefined;
  readonly sockets;

  constructor(webrtc?: WebRtcSignaling) {
    this.sockets = createWsTrackers(this.#runtime, webrtc);
  }

  readonly #runtime: WsTrackersRuntime = {
    clock: this.clock,
    http: {
      openWebSocket: async (request, handlers) => {
        const opened: Opened = { request, handlers, sent: [], isClosed: false };
        this.opened.push(opened);
        if (this.problem !== undefined) throw new Error(this.problem);
        return {
          send: (text) => {
            const message = JSON.parse(text);
            opened.sent.push(message);
            const answer = this.answer(message);
            if (answer !== undefined) handlers.received(JSON.stringify(answer));
          },
          close: () => {
            opened.isClosed = true;
            handlers.closed();
          },
        };
      },
    },
  };
  readonly signal = new AbortController().signal;

  announce(infohash: Infohash, more: Partial<AnnounceRequest> = {}) {
    return this.sockets.announce(HOST, request(infohash, more), this.signal);
  }
}

test("WsTrackers.announce: connects to the given address, sends no offers, returns counts, interval and peers", async () => {
  const bench = new Bench();
  bench.answer = ({ info_hash }) => ({
    action: "announce",
    info_hash,
    interval: 120,
    complete: 3,
    incomplete: 4,
    peers: [
      { ip: "60.1.2.3", port: 5 },
      { ip: "no address", port: 5 },
      { ip: "60.1.2.4", port: 0 },
    ],
  });
  assert.deepEqual(await bench.announce(ONE), {
    ok: true,
    intervalSeconds: 120,
    counts: { seeders: 3, leechers: 4 },
    peers: [{ host: "60.1.2.3", port: 5 }],
  });
  const [{ request: asked, sent }] = bench.opened as [Opened];
  assert.deepEqual([asked.connectTo, asked.url.href], [HOST, URL_TEXT]);
  assert.deepEqual(sent, [
    {
      action: "announce",
      info_hash: binary(ONE),
      peer_id: "\xf1".repeat(20),
      port: 8621,
      uploaded: 1,
      downloaded: 2,
      left: 3,
      numwant: 50,
      event: "started",
    },
  ]);
});

test("WsTrackers: all swarms share one connection; replies match requests; offers of peers are ignored", async () => {
  const bench = new Bench();
  const [one, two] = [bench.announce(ONE), bench.announce(TWO)];
  const scrape = bench.sockets.scrape(HOST, URL_TEXT, TWO, bench.signal);
  await settled();
  assert.equal(bench.opened.length, 1);
  const [{ handlers, sent }] = bench.opened as [Opened];
  assert.equal(sent.length, 3);
  const say = (message: unknown) => handlers.received(JSON.stringify(message));
  say({ action: "announce", info_hash: binary(ONE), offer: { type: "offer", sdp: "x" }, offer_id: "1" });
  say({ action: "announce", info_hash: "3".repeat(20), interval: 9 });
  say({ action: "announce", info_hash: binary(TWO), complete: 2 });
  say({ action: "scrape", files: { [binary(TWO)]: { complete: 7, incomplete: 8, downloaded: 9 } } });
  say({ action: "announce", info_hash: binary(ONE), "failure reason": "not\nhere" });
  assert.deepEqual(await one, { ok: false, reason: "not here" });
  const reply = await two;
  assert.deepEqual(reply.ok && reply.counts, { seeders: 2, leechers: 0 });
  assert.deepEqual(await scrape, { seeders: 7, leechers: 8, completed: 9 });
});

/** WebRTC that makes offers with its calls as ids, and answers each offer. */
class FakeSignaling implements WebRtcSignaling {
  readonly answered = (infohash: Infohash, { id }: Offer) =>
    void this.calls.push(`answered ${infohash[0]} ${id}`);
  readonly calls: string[] = [];

  async offers(infohash: Infohash, isLocal: boolean, count: number): Promise<readonly Offer[]> {
    this.calls.push(`offers ${infohash[0]} ${isLocal} ${count}`);
    return Array.from({ length: count }, (_, i) => ({
      id: `${i}`,
      description: { type: "offer", sdp: "s" },
    }));
  }

  async answer(infohash: Infohash, isLocal: boolean, { id }: Offer): Promise<Offer> {
    this.calls.push(`answer ${infohash[0]} ${isLocal} ${id}`);
    return { id, description: { type: "answer", sdp: "t" } };
  }
}

test("WsTrackers: with WebRTC, announces contain offers, and offers and answers of peers are passed on", async () => {
  const webrtc = new FakeSignaling();
  const bench = new Bench(webrtc);
  bench.answer = ({ info_hash, answer }) => (answer ? undefined : { action: "announce", info_hash });
  await bench.announce(ONE, { numWant: 50 });
  const [{ handlers, sent }] = bench.opened as [Opened];
  assert.deepEqual(
    sent[0].offers.map(({ offer_id }: { offer_id: string }) => offer_id),
    ["0", "1", "2", "3", "4"],
  );
  assert.equal(sent[0].numwant, 5);
  const say = (infohash: Infohash, more: object) =>
    handlers.received(
      JSON.stringify({ action: "announce", info_hash: binary(infohash), peer_id: "p".repeat(20), ...more }),
    );
  say(ONE, { offer: { type: "offer", sdp: "x" }, offer_id: "theirs" });
  say(ONE, { answer: { type: "answer", sdp: "y" }, offer_id: "3" });
  say(TWO, { offer: { type: "offer", sdp: "x" }, offer_id: "of another swarm" });
  await settled();
  assert.deepEqual(webrtc.calls, ["offers 1 false 5", "answer 1 false theirs", "answered 1 3"]);
  const { answer, to_peer_id, offer_id, peer_id } = sent[1];
  assert.deepEqual([answer.sdp, to_peer_id, offer_id], ["t", "p".repeat(20), "theirs"]);
  assert.equal(peer_id, latin1Text(US.peerId));
  for (let i = 0; i < 1_000; i++) say(ONE, { offer: { type: "offer", sdp: "x" }, offer_id: `${i}` });
  await settled();
  assert.equal(webrtc.calls.filter((call) => call.startsWith("answer ")).length, 50);
});

test("WsTrackers: with WebRTC, a connection stays open until its last swarm is left", async () => {
  const bench = new Bench(new FakeSignaling());
  bench.answer = ({ info_hash }) => ({ action: "announce", info_hash });
  await bench.announce(ONE);
  await bench.clock.advance(600_000);
  await settled();
  assert.equal(bench.opened[0]!.isClosed, false);
  await bench.announce(ONE, { event: "stopped" });
  assert.equal(bench.opened[0]!.sent[1].offers, undefined);
  await bench.clock.advance(11_000);
  await settled();
  assert.equal(bench.opened[0]!.isClosed, true);
});

test("WsTrackers: closes an idle connection and opens it again on demand", async () => {
  const bench = new Bench();
  bench.answer = ({ info_hash }) => ({ action: "announce", info_hash });
  await bench.announce(ONE);
  await bench.clock.advance(9_000);
  await bench.announce(ONE);
  await bench.clock.advance(9_000);
  await settled();
  assert.equal(bench.opened[0]!.isClosed, false);
  await bench.clock.advance(2_000);
  await settled();
  assert.equal(bench.opened[0]!.isClosed, true);
  await bench.announce(ONE);
  assert.equal(bench.opened.length, 2);
});

test("WsTrackers: the backoff of an unreachable tracker grows and applies to all swarms", async () => {
  const bench = new Bench();
  bench.problem = "refused";
  await assert.rejects(bench.announce(ONE), /refused/);
  await assert.rejects(bench.announce(TWO), /a moment ago/);
  await bench.clock.advance(10_000);
  await assert.rejects(bench.announce(TWO), /refused/);
  await bench.clock.advance(10_000);
  await assert.rejects(bench.announce(TWO), /a moment ago/);
  await bench.clock.advance(10_000);
  bench.problem = undefined;
  bench.answer = ({ info_hash }) => ({ action: "announce", info_hash });
  assert.equal((await bench.announce(ONE)).ok, true);
  assert.equal(bench.opened.length, 3);
});

test("WsTrackers: a pending request rejects if the connection ends, on malformed messages, on its signal and on close", async () => {
  const bench = new Bench();
  const hungUp = bench.announce(ONE);
  await settled();
  bench.opened[0]!.handlers.closed();
  await assert.rejects(hungUp, /closed the connection/);
  await bench.clock.advance(10_000);
  const nonsense = bench.announce(ONE);
  await settled();
  for (let i = 0; i < 10; i++) bench.opened[1]!.handlers.received("[".repeat(60_000));
  await assert.rejects(nonsense, /not JSON/);
  assert.equal(bench.opened[1]!.isClosed, true);
  await bench.clock.advance(60_000);
  const abort = new AbortController();
  const given = bench.sockets.announce(HOST, request(ONE), abort.signal);
  abort.abort(new Error("not wanted"));
  await assert.rejects(given, /not wanted/);
  const closing = bench.announce(TWO);
  await settled();
  bench.sockets.close();
  await assert.rejects(closing, /connection was closed/);
});
