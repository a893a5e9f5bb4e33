import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { PeerAddress } from "../../src/base/address.ts";
import { latin1Bytes, latin1Text, toHex } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { UdpReceiver } from "../../src/net/contract.ts";
import { openTrackerServer } from "../../src/net/tracker-server.ts";
import type { OwnNetwork } from "../../src/runtime/contract.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import { decodeHttpAnnounce, decodeHttpScrape, httpAnnounceUrl } from "../../src/wire/tracker/http.ts";
import {
  decodeUdpReply,
  encodeUdpAnnounce,
  encodeUdpConnect,
  encodeUdpScrape,
} from "../../src/wire/tracker/udp.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { seededRandom } from "../seeded-random.ts";

const ONE = "1".repeat(40) as Infohash;
const SECRET = "2".repeat(40) as Infohash;
const LAN: OwnNetwork = {
  host: "192.168.1.5",
  bits: 24,
  interfaceName: "eth0",
  isLoopback: false,
  multicastAddress: "192.168.1.5",
};

const request = (more: Partial<AnnounceRequest> = {}) =>
  announceRequest("http://t/announce", { infohash: ONE, peerId: new Uint8Array(20).fill(7), ...more });

/** A tracker server on a fake UDP port. */
class Bench {
  readonly clock = new FakeClock();
  readonly sent: { bytes: Uint8Array; to: PeerAddress }[] = [];
  #received: UdpReceiver = () => {};
  external: PeerAddress | undefined;
  readonly desk;

  constructor(mode: "own" | "open" = "own") {
    this.desk = openTrackerServer({
      runtime: {
        clock: this.clock,
        sha256: (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest()),
        randomBytes: (length) => new Uint8Array(length).fill(5),
        surroundings: {
          networks: () => [LAN],
          gateway: async () => undefined,
          run: async () => "",
        },
      },
      udp: {
        send: (bytes, to) => void this.sent.push({ bytes, to }),
        listen: (protocol, received) => {
          assert.equal(protocol, "tracker");
          this.#received = received;
        },
      },
      mode,
      isShared: (infohash) => infohash === ONE,
      listening: () => ({ host: "::", port: 8621 }),
      external: () => this.external,
      random: seededRandom(1),
    });
  }

  /** Returns the response to a datagram, if any. */
  ask(bytes: Uint8Array, host = "60.0.0.1"): Uint8Array | undefined {
    const before = this.sent.length;
    this.#received(bytes, { host, port: 40_000 });
    assert.ok(this.sent.length <= before + 1, "one answer at most");
    return this.sent[before]?.bytes;
  }

  connect(host = "60.0.0.1"): Uint8Array {
    const reply = decodeUdpReply(this.ask(encodeUdpConnect(1), host)!, 4);
    assert.equal(reply.kind, "connect");
    return reply.kind === "connect" ? reply.connectionId : new Uint8Array(0);
  }

  http(more: Partial<AnnounceRequest>, host: string) {
    const query = httpAnnounceUrl(request(more)).split("?")[1]!;
    return decodeHttpAnnounce(this.desk.announce(query, { host, isForeign: false }));
  }
}

test("TrackerServer: peers announced over UDP are returned over HTTP, and vice versa", () => {
  const bench = new Bench();
  const id = bench.connect();
  const first = decodeUdpReply(bench.ask(encodeUdpAnnounce(id, 2, request()))!, 4);
  assert.deepEqual(first, {
    kind: "announce",
    transaction: 2,
    intervalSeconds: 600,
    seeders: 0,
    leechers: 1,
    peers: [],
  });
  const reply = bench.http({ port: 7, left: 0 }, "60.0.0.2");
  assert.deepEqual(reply, {
    ok: true,
    intervalSeconds: 600,
    minIntervalSeconds: 60,
    counts: { seeders: 1, leechers: 1 },
    externalAddress: "60.0.0.2",
    peers: [{ host: "60.0.0.1", port: 6881 }],
  });
  const second = decodeUdpReply(bench.ask(encodeUdpAnnounce(id, 3, request()))!, 4);
  assert.deepEqual(second.kind === "announce" && second.peers, [{ host: "60.0.0.2", port: 7 }]);
  const scraped = decodeUdpReply(bench.ask(encodeUdpScrape(id, 4, [ONE, SECRET]))!, 4);
  assert.deepEqual(scraped.kind === "scrape" && scraped.counts, [
    { seeders: 1, leechers: 1, completed: 0 },
    { seeders: 0, leechers: 0, completed: 0 },
  ]);
  const query = `info_hash=${"%11".repeat(20)}`;
  const scrape = bench.desk.scrape(query, { host: "60.0.0.2", isForeign: false });
  assert.deepEqual(decodeHttpScrape(scrape, ONE), { seeders: 1, leechers: 1, completed: 0 });
});

test("TrackerServer: local clients get the local address of the engine, clients on the Internet the external one", () => {
  const bench = new Bench();
  const peers = (host: string) => {
    const reply = bench.http({ port: 1 }, host);
    return reply.ok ? reply.peers : [];
  };
  assert.deepEqual(peers("192.168.1.9"), [{ host: "192.168.1.5", port: 8621 }]);
  assert.deepEqual(peers("60.0.0.1"), []);
  bench.external = { host: "60.7.7.7", port: 50_000 };
  assert.deepEqual(peers("60.0.0.1"), [bench.external]);
  bench.external = { host: "10.0.0.7", port: 50_000 };
  assert.deepEqual(peers("60.0.0.1"), []);
  assert.deepEqual(peers("127.0.0.1").slice(0, 1), [{ host: "127.0.0.1", port: 8621 }]);
});

test("TrackerServer: `own` refuses content that is not open here or is private; `open` accepts all, but reveals no private content", () => {
  const refusal = { ok: false, reason: "not tracked here" };
  assert.deepEqual(new Bench().http({ infohash: SECRET }, "192.168.1.9"), refusal);
  const udp = new Bench();
  const answer = udp.ask(encodeUdpAnnounce(udp.connect(), 2, request({ infohash: SECRET })))!;
  assert.deepEqual(decodeUdpReply(answer, 4), { kind: "error", transaction: 2, message: "not tracked here" });
  const open = new Bench("open").http({ infohash: SECRET }, "192.168.1.9");
  assert.deepEqual(open.ok && open.peers, []);
});

test("TrackerServer: a forged, foreign or expired connection id gets an error shorter than the request and changes nothing", async () => {
  const bench = new Bench();
  const id = bench.connect();
  const question = encodeUdpAnnounce(id, 2, request());
  const forged = question.slice();
  forged[5]! ^= 1;
  const isRefused = (answer: Uint8Array | undefined, asked: Uint8Array) => {
    assert.equal(decodeUdpReply(answer!, 4).kind, "error");
    assert.ok(answer!.length <= 16 && answer!.length <= asked.length);
  };
  isRefused(bench.ask(forged), forged);
  isRefused(bench.ask(question, "60.0.0.2"), question);
  await bench.clock.advance(119_000);
  assert.equal(decodeUdpReply(bench.ask(question)!, 4).kind, "announce");
  await bench.clock.advance(61_000);
  isRefused(bench.ask(question), question);
  const reply = bench.http({ port: 7 }, "60.0.0.3");
  assert.deepEqual(reply.ok && reply.counts, { seeders: 0, leechers: 2 });
});

test("TrackerServer: a flood from forged addresses gets at most a thousand responses, none longer than the request", () => {
  const bench = new Bench();
  let [answers, bytesIn, bytesOut] = [0, 0, 0];
  for (let n = 0; n < 20_000; n++) {
    const question = n % 2 === 0 ? encodeUdpConnect(n) : encodeUdpAnnounce(new Uint8Array(8), n, request());
    const answer = bench.ask(question, `60.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`);
    bytesIn += question.length;
    if (!answer) continue;
    assert.ok(answer.length <= question.length);
    answers++;
    bytesOut += answer.length;
  }
  assert.equal(answers, 1000);
  assert.ok(bytesOut < bytesIn);
});

test("TrackerServer: malformed requests get no response over UDP, and an error text over HTTP", () => {
  const bench = new Bench();
  const id = bench.connect();
  const cut = encodeUdpAnnounce(id, 2, request()).subarray(0, 97);
  const unknown = encodeUdpScrape(id, 2, [ONE]);
  unknown[11] = 9;
  const none = [new Uint8Array(0), new Uint8Array(16), latin1Bytes("x".repeat(2000)), cut, unknown];
  for (const bytes of none) assert.equal(bench.ask(bytes), undefined, toHex(bytes.subarray(0, 20)));
  for (const query of ["", "info_hash=abc", `info_hash=${"a".repeat(20)}`, "%", "x".repeat(9000)]) {
    const answer = bench.desk.announce(query, { host: "60.0.0.1", isForeign: false });
    assert.match(latin1Text(answer), /^d14:failure reason\d+:.*8:retry in5:nevere$/s, query.slice(0, 30));
  }
});

test("TrackerServer: a UDP announce response fits one datagram with any number of peers", () => {
  const bench = new Bench("open");
  for (let n = 0; n < 400; n++) bench.http({ port: 1 + n }, `60.1.${n >> 8}.${n & 255}`);
  for (let n = 0; n < 400; n++) bench.http({ port: 1 + n }, `2001:470:${n}::1`);
  const announce = request({ numWant: 1000, infohash: ONE });
  const four = bench.ask(encodeUdpAnnounce(bench.connect(), 2, announce))!;
  const six = bench.ask(encodeUdpAnnounce(bench.connect("2001:470::1"), 2, announce), "2001:470::1")!;
  assert.equal(four.length, 20 + 200 * 6);
  assert.equal(six.length, 20 + 76 * 18);
});
