import assert from "node:assert/strict";
import { test } from "node:test";
import type { AddressScope, PeerAddress } from "../../src/base/address.ts";
import { concatBytes, fromHex, latin1Bytes, readU32, toHex } from "../../src/base/bytes.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createAnnouncer } from "../../src/net/announcer.ts";
import type { OutboundOptions } from "../../src/outbound/request.ts";
import type { DatagramReceiver, Net } from "../../src/runtime/contract.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { announceRequest } from "../parts/announce-request.ts";

const TRACKER: PeerAddress = { host: "93.184.216.34", port: 80 };
const V6: PeerAddress = { host: "2606:2800:220:1::1", port: 80 };
const ID = fromHex("a1a2a3a4a5a6a7a8")!;

interface Datagram {
  readonly to: PeerAddress;
  readonly action: number;
  readonly transaction: number;
  readonly bytes: Uint8Array;
}

/** An announcer on a fake network. */
class Bench {
  readonly clock = new FakeClock();
  readonly sent: Datagram[] = [];
  readonly fetched: { url: string; options: OutboundOptions }[] = [];
  readonly names = new Map([
    ["t.example", [TRACKER.host]],
    ["both.example", [V6.host, TRACKER.host]],
  ]);
  readonly logged: string[] = [];
  fetch: (url: string) => Promise<{ status: number; body: string }> = async () => ({
    status: 200,
    body: "d5:peers0:e",
  });
  #receive: DatagramReceiver = () => {};
  #random = 0;
  isClosed = false;

  readonly announcer = createAnnouncer(
    {
      clock: this.clock,
      lookup: async (name) => this.names.get(name) ?? Promise.reject(new Error(`no such name: ${name}`)),
      randomBytes: (length) => new Uint8Array(length).fill(++this.#random),
      net: {
        bindUdp: async (address: PeerAddress, received: DatagramReceiver) => {
          this.#receive = received;
          return {
            address,
            send: (bytes: Uint8Array, to: PeerAddress) => {
              this.sent.push({ to, action: readU32(bytes, 8), transaction: readU32(bytes, 12), bytes });
            },
            close: () => {
              this.isClosed = true;
            },
          };
        },
      } as unknown as Net,
      http: { openWebSocket: () => Promise.reject(new Error("no WebSocket is asked for")) },
    },
    {
      get: async (url, options) => {
        this.fetched.push({ url, options });
        const { status, body } = await this.fetch(url);
        return { status, headers: new Headers(), bytes: latin1Bytes(body), finalUrl: url };
      },
    },
    { ...SILENT_LOG, info: (message, fields) => this.logged.push(`${message} ${JSON.stringify(fields)}`) },
  );

  /** A datagram from a tracker: action, transaction id of the last request, and payload. */
  async answer(
    action: number,
    rest: Uint8Array,
    from: PeerAddress = TRACKER,
    transaction?: number,
    actual?: PeerAddress,
  ): Promise<void> {
    const head = new Uint8Array(8);
    new DataView(head.buffer).setUint32(0, action);
    new DataView(head.buffer).setUint32(4, transaction ?? this.sent.at(-1)!.transaction);
    this.#receive(concatBytes([head, rest]), from, actual);
    await settled();
  }
}

const PEERS = fromHex("00000384000000020000000301020304ffff")!;
const EXPECTED = {
  ok: true,
  peers: [{ host: "1.2.3.4", port: 65_535 }],
  intervalSeconds: 900,
  counts: { seeders: 3, leechers: 2 },
};

test("announce: a UDP tracker gets connect, then announces that reuse the connection id for a minute", async () => {
  const bench = new Bench();
  const first = bench.announcer.announce(announceRequest("udp://t.example:80/announce"));
  await settled();
  assert.deepEqual(bench.sent.at(-1)!.to, TRACKER);
  assert.equal(bench.sent.at(-1)!.action, 0);
  await bench.answer(0, ID);
  assert.equal(toHex(bench.sent.at(-1)!.bytes.subarray(0, 8)), toHex(ID));
  assert.equal(bench.sent.at(-1)!.action, 1);
  await bench.answer(1, PEERS);
  assert.deepEqual(await first, EXPECTED);

  await bench.clock.advance(50_000);
  const second = bench.announcer.announce(announceRequest("udp://t.example:80/announce"));
  await settled();
  assert.equal(bench.sent.at(-1)!.action, 1);
  await bench.answer(1, PEERS);
  assert.deepEqual(await second, EXPECTED);

  await bench.clock.advance(11_000);
  const third = bench.announcer.announce(announceRequest("udp://t.example:80/announce"));
  await settled();
  assert.equal(bench.sent.at(-1)!.action, 0);
  await bench.answer(0, ID);
  await bench.answer(1, PEERS);
  assert.deepEqual(await third, EXPECTED);
  assert.equal(bench.clock.waiting, 0);
  bench.announcer.close();
  await settled();
  assert.ok(bench.isClosed);
});

test("announce: repeats a UDP request after 5 and 10 s with the same transaction id", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://93.184.216.34:80/announce"));
  await bench.clock.advance(4999);
  assert.equal(bench.sent.length, 1);
  await bench.clock.advance(1);
  assert.equal(bench.sent.length, 2);
  await bench.clock.advance(10_000);
  assert.equal(bench.sent.length, 3);
  assert.equal(new Set(bench.sent.map(({ transaction }) => transaction)).size, 1);
  await bench.clock.advance(20_000);
  assert.deepEqual(await reply, { ok: false, reason: "no response to 3 attempts" });
  assert.equal(bench.clock.waiting, 0);
});

/** An announce response with one IPv6 peer. */
const V6_PEERS = fromHex(`${"00000384000000020000000320010db8000000000000000000000001"}01bb`)!;
const V6_PEER = { host: "2001:db8::1", port: 443 };

/** The transaction id of the last request to this address. */
const asked = (bench: Bench, to: PeerAddress) =>
  bench.sent.findLast((datagram) => datagram.to.host === to.host)!.transaction;

test("announce: queries both IP versions at once and merges the peers", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://both.example:80"));
  await settled();
  for (const to of [TRACKER, V6]) await bench.answer(0, ID, to, asked(bench, to));
  await bench.answer(1, PEERS, TRACKER, asked(bench, TRACKER));
  await bench.clock.advance(499);
  await bench.answer(1, V6_PEERS, V6, asked(bench, V6));
  assert.deepEqual(await reply, { ...EXPECTED, peers: [...EXPECTED.peers, V6_PEER] });
  assert.equal(bench.clock.waiting, 0);
});

test("announce: through a proxy, the peers have the IP version of the response", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://t.example:80"));
  await settled();
  await bench.answer(0, ID, TRACKER, undefined, V6);
  await bench.answer(1, V6_PEERS, TRACKER, undefined, V6);
  assert.deepEqual(await reply, { ...EXPECTED, peers: [V6_PEER] });
});

test("announce: waits half a second for IPv6, then skips it for half an hour", async () => {
  const bench = new Bench();
  const first = bench.announcer.announce(announceRequest("udp://both.example:80"));
  await settled();
  await bench.answer(0, ID, TRACKER, asked(bench, TRACKER));
  await bench.answer(1, PEERS, TRACKER, asked(bench, TRACKER));
  await bench.clock.advance(500);
  assert.deepEqual(await first, EXPECTED);
  const questionsOver6 = () => bench.sent.filter(({ to }) => to.host === V6.host).length;
  const before = questionsOver6();
  const second = bench.announcer.announce(announceRequest("udp://both.example:80"));
  await settled();
  await bench.answer(1, PEERS, TRACKER, asked(bench, TRACKER));
  assert.deepEqual(await second, EXPECTED);
  assert.equal(questionsOver6(), before);
  assert.equal(bench.clock.waiting, 0);
  await bench.clock.advance(1_800_000);
  const third = bench.announcer.announce(announceRequest("udp://both.example:80"));
  await settled();
  assert.equal(questionsOver6(), before + 1);
  bench.announcer.close();
  await bench.clock.advance(60_000);
  await third;
});

test("announce: uses the IPv6 reply if IPv4 does not respond", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://both.example:80"));
  await bench.clock.advance(6_000);
  await bench.answer(0, ID, V6, asked(bench, V6));
  await bench.answer(1, V6_PEERS, V6, asked(bench, V6));
  await bench.clock.advance(500);
  assert.deepEqual(await reply, { ...EXPECTED, peers: [V6_PEER] });
});

test("announce: queries an HTTP tracker over each of its IP versions", async () => {
  const bench = new Bench();
  await bench.announcer.announce(announceRequest("http://both.example/announce"));
  assert.deepEqual(
    bench.fetched.map(({ options }) => options.family),
    [4, 6],
  );
  bench.fetch = () => Promise.reject(new Error("no route"));
  assert.deepEqual(await bench.announcer.announce(announceRequest("http://both.example/announce")), {
    ok: false,
    reason: "no route",
  });
});

test("announce: accepts UDP responses only from the tracker's address with a pending transaction id", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://t.example:80"));
  await settled();
  const { transaction } = bench.sent[0]!;
  await bench.answer(0, ID, { ...TRACKER, port: 81 });
  await bench.answer(0, ID, { host: "93.184.216.35", port: 80 });
  await bench.answer(0, ID, TRACKER, transaction ^ 1);
  assert.equal(bench.sent.length, 1);
  await bench.answer(0, ID);
  assert.equal(bench.sent.length, 2);
  await bench.answer(0, ID, TRACKER, transaction);
  await bench.answer(1, PEERS);
  assert.deepEqual(await reply, EXPECTED);
});

test("announce: returns the error of a UDP tracker", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://t.example:80"));
  await settled();
  await bench.answer(0, ID);
  await bench.answer(3, latin1Bytes("not registered"));
  assert.deepEqual(await reply, { ok: false, reason: "not registered" });
});

test("announce: gets a new connection id if a UDP tracker has dropped the old one", async () => {
  const bench = new Bench();
  const first = bench.announcer.announce(announceRequest("udp://t.example:80"));
  await settled();
  await bench.answer(0, ID);
  await bench.answer(1, PEERS);
  await first;
  const second = bench.announcer.announce(announceRequest("udp://t.example:80"));
  await settled();
  await bench.answer(3, latin1Bytes("connection id mismatch"));
  assert.equal(bench.sent.at(-1)!.action, 0);
  await bench.answer(0, fromHex("0102030405060708")!);
  assert.equal(toHex(bench.sent.at(-1)!.bytes.subarray(0, 8)), "0102030405060708");
  await bench.answer(1, PEERS);
  assert.deepEqual(await second, EXPECTED);
});

test("announce: a malformed UDP response is an error", async () => {
  const bench = new Bench();
  const reply = bench.announcer.announce(announceRequest("udp://t.example:80"));
  await settled();
  await bench.answer(0, ID);
  await bench.answer(1, PEERS.subarray(0, 13));
  const { ok, reason } = (await reply) as { ok: false; reason: string };
  assert.equal(ok, false);
  assert.match(reason, /compact peers|UDP tracker reply/);
});

test("announce: rejects unusable UDP URLs", async () => {
  const bench = new Bench();
  bench.names.set("odd.example", ["224.0.0.1", "0.0.0.0"]);
  const cases: readonly (readonly [string, RegExp])[] = [
    ["udp://t.example/announce", /udp:\/\/host:port/],
    ["udp://t.example:0/", /udp:\/\/host:port/],
    ["udp://t.example:99999/", /udp:\/\/host:port/],
    ["udp://gone.example:80/", /no such name/],
    ["udp://odd.example:80/", /no usable address/],
    ["udp://255.255.255.255:80/", /no usable address/],
    ["ftp://t.example/", /not a tracker URL/],
    ["http://t.example/announce?info_hash=x", /contains info_hash/],
  ];
  for (const [url, message] of cases) {
    const reply = (await bench.announcer.announce(announceRequest(url))) as { reason: string };
    assert.match(reply.reason, message, url);
  }
  assert.deepEqual([bench.sent.length, bench.fetched.length, bench.clock.waiting], [0, 0, 0]);
});

test("announce: queries an HTTP tracker through the outbound client", async () => {
  const bench = new Bench();
  bench.fetch = async () => ({
    status: 200,
    body: "d8:completei3e10:incompletei2e8:intervali900e5:peers6:\x01\x02\x03\x04\xff\xffe",
  });
  assert.deepEqual(
    await bench.announcer.announce(announceRequest("http://t.example/announce?k=1")),
    EXPECTED,
  );
  const { url, options } = bench.fetched[0]!;
  assert.match(url, /^http:\/\/t\.example\/announce\?k=1&info_hash=%AB/);
  assert.deepEqual([options.limitBytes, options.allowPrivate], [1024 * 1024, false]);
  const problem = (path: string, scope: AddressScope) => options.check!(new URL(path, "http://h/"), scope);
  assert.equal(problem("/announce", "loopback"), undefined);
  for (const scope of ["loopback", "private", "link-local"] as const) {
    assert.equal(problem("/announce.php", scope), undefined);
    assert.match(problem("/ace/getstream", scope)!, /must have the path/);
  }
  assert.equal(problem("/x", "global"), undefined);
});

test("announce: returns the error of an HTTP tracker", async () => {
  const bench = new Bench();
  const reason = async (status: number, body: string) => {
    bench.fetch = async () => ({ status, body });
    return (
      (await bench.announcer.announce(announceRequest("http://t.example/announce"))) as { reason: string }
    ).reason;
  };
  assert.equal(await reason(200, "d14:failure reason3:noee"), "noe");
  assert.equal(await reason(400, "d14:failure reason3:noee"), "noe");
  assert.equal(await reason(404, "<html>"), "the tracker answered with status 404");
  assert.equal(await reason(500, "d5:peers0:e"), "the tracker answered with status 500");
  assert.match(await reason(200, "<html>"), /bencode/);
  bench.fetch = () => Promise.reject(new Error("connection refused"));
  assert.equal(
    ((await bench.announcer.announce(announceRequest("http://t.example/announce"))) as { reason: string })
      .reason,
    "connection refused",
  );
});

test("announce: ends when its signal fires, during a UDP request and before the start", async () => {
  const bench = new Bench();
  const controller = new AbortController();
  const reply = bench.announcer.announce(announceRequest("udp://t.example:80"), {
    signal: controller.signal,
  });
  await settled();
  controller.abort(new Error("stopped"));
  assert.deepEqual(await reply, { ok: false, reason: "stopped" });
  assert.deepEqual(
    await bench.announcer.announce(announceRequest("udp://t.example:80"), { signal: controller.signal }),
    {
      ok: false,
      reason: "stopped",
    },
  );
  assert.equal(bench.clock.waiting, 0);
});

test("announce: runs 50 at once, queues 500, and rejects the rest", async () => {
  const bench = new Bench();
  let release: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  bench.fetch = () => gate.then(() => ({ status: 200, body: "d5:peers0:e" }));
  const replies = Array.from({ length: 551 }, () =>
    bench.announcer.announce(announceRequest("http://t.example/announce")),
  );
  await settled();
  assert.equal(bench.fetched.length, 50);
  assert.deepEqual(await replies[550], { ok: false, reason: "too many concurrent announces" });
  release();
  const settledReplies = await Promise.all(replies);
  assert.equal(settledReplies.filter(({ ok }) => ok).length, 550);
  assert.equal(bench.fetched.length, 550);
});

test("scrape: derives the HTTP scrape URL from the announce URL (BEP 48); sends nothing if there is none", async () => {
  const bench = new Bench();
  const infohash = "ab".repeat(20) as Infohash;
  const file = `20:${"\u00ab".repeat(20)}d8:completei7e10:incompletei2ee`;
  bench.fetch = async () => ({ status: 200, body: `d5:filesd${file}ee` });
  const counts = await bench.announcer.scrape("http://t.example/x/announce?k=1", infohash);
  assert.deepEqual(counts, { seeders: 7, leechers: 2, completed: 0 });
  assert.match(bench.fetched[0]!.url, /^http:\/\/t\.example\/x\/scrape\?k=1&info_hash=/);
  assert.equal(await bench.announcer.scrape("http://t.example/x", infohash), undefined);
  assert.equal(bench.fetched.length, 1);
  for (const answer of [
    { status: 404, body: "" },
    { status: 200, body: "<html>" },
  ]) {
    bench.fetch = async () => answer;
    assert.equal(await bench.announcer.scrape("http://t.example/announce", infohash), undefined);
  }
});

test("scrape: queries a UDP tracker (BEP 15)", async () => {
  const bench = new Bench();
  const counts = bench.announcer.scrape("udp://t.example:80", "ab".repeat(20) as Infohash);
  await settled();
  await bench.answer(0, ID);
  assert.equal(bench.sent.at(-1)!.action, 2);
  await bench.answer(2, fromHex("000000050000000900000003")!);
  assert.deepEqual(await counts, { seeders: 5, completed: 9, leechers: 3 });
});

test("announce: logs each public address reported by trackers once (BEP 24)", async () => {
  const bench = new Bench();
  bench.fetch = async () => ({ status: 200, body: "d11:external ip4:\x05\x06\x07\x085:peers0:e" });
  for (let i = 0; i < 3; i++) await bench.announcer.announce(announceRequest("http://t.example/announce"));
  assert.deepEqual(bench.logged, [
    'public address seen by trackers {"address":"5.6.7.8","tracker":"t.example"}',
  ]);
});
