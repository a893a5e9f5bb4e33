import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, latin1Bytes, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import {
  decodeHttpAnnounce,
  decodeHttpScrape,
  httpAnnounceUrl,
  httpScrapeUrl,
} from "../../src/wire/tracker/http.ts";
import {
  decodeUdpReply,
  encodeUdpAnnounce,
  encodeUdpConnect,
  encodeUdpScrape,
} from "../../src/wire/tracker/udp.ts";
import { isTrackerUrl, trackerPath, trackerUrlProblem } from "../../src/wire/tracker/url.ts";

const INFOHASH = "0102036162632d2e5f7e2f20ff000000000000ff" as Infohash;
const REQUEST: AnnounceRequest = {
  url: "http://t.example/announce",
  infohash: INFOHASH,
  peerId: latin1Bytes("-SL0100-abcdefghijkl"),
  port: 6881,
  uploaded: 5,
  downloaded: 2 ** 40 + 7,
  left: 9,
  event: "started",
  numWant: 50,
  key: 0xdeadbeef,
};

test("httpAnnounceUrl sends every parameter, bytes percent-encoded (BEP 3, 7, 23)", () => {
  assert.equal(
    httpAnnounceUrl(REQUEST),
    "http://t.example/announce?info_hash=%01%02%03abc-._~%2F%20%FF%00%00%00%00%00%00%FF&peer_id=-SL0100-abcdefghijkl" +
      "&port=6881&uploaded=5&downloaded=1099511627783&left=9&compact=1&no_peer_id=1&numwant=50&key=deadbeef&event=started",
  );
});

test("httpAnnounceUrl keeps the tracker's query and drops the fragment", () => {
  const url = httpAnnounceUrl({
    ...REQUEST,
    url: "https://t.example/a.php?passkey=1#x",
    event: "none",
    trackerId: latin1Bytes("a b"),
  });
  assert.match(url, /^https:\/\/t\.example\/a\.php\?passkey=1&info_hash=/);
  assert.match(url, /&key=deadbeef&trackerid=a%20b$/);
});

const announce = (text: string) => decodeHttpAnnounce(latin1Bytes(text));

test("decodeHttpAnnounce reads compact peers of both families and all optional members", () => {
  const v6 = `${"\x20\x01\x0d\xb8"}${"\0".repeat(11)}\x01\x01\xbb`;
  const text =
    `d8:intervali900e12:min intervali60e5:peers12:\x01\x02\x03\x04\x1a\xe1\x01\x02\x03\x04\x00\x006:peers618:${v6}` +
    "10:tracker id2:id15:warning message4:slowe";
  assert.deepEqual(announce(text), {
    ok: true,
    peers: [
      { host: "1.2.3.4", port: 6881 },
      { host: "2001:db8::1", port: 443 },
    ],
    intervalSeconds: 900,
    minIntervalSeconds: 60,
    trackerId: latin1Bytes("id"),
    warning: "slow",
  });
});

test("decodeHttpAnnounce reads lists of peers; host names and malformed entries are skipped", () => {
  const entry = (ip: string, port: number) => `d2:ip${ip.length}:${ip}4:porti${port}ee`;
  const list = [
    entry("1.2.3.4", 5),
    entry("::FFFF:1.2.3.4", 6),
    entry("host.example", 7),
    entry("1.2.3.4", 0),
    "i1e",
    "de",
  ];
  assert.deepEqual(announce(`d8:intervali60e5:peersl${list.join("")}ee`), {
    ok: true,
    peers: [
      { host: "1.2.3.4", port: 5 },
      { host: "1.2.3.4", port: 6 },
    ],
    intervalSeconds: 60,
  });
});

test("decodeHttpAnnounce reads the size of the swarm (BEP 3) and the external address (BEP 24)", () => {
  const v6 = (tail: string) => `16:${"\x20\x01\x0d\xb8"}${"\0".repeat(11)}${tail}`;
  const cases: readonly (readonly [string, object])[] = [
    ["8:completei7e10:incompletei2e", { counts: { seeders: 7, leechers: 2 } }],
    ["8:completei7e", { counts: { seeders: 7, leechers: 0 } }],
    ["8:completei-1e10:incompletei-1e", {}],
    ["8:complete1:7", {}],
    ["11:external ip4:\x05\x06\x07\x08", { externalAddress: "5.6.7.8" }],
    [`11:external ip${v6("\x01")}`, { externalAddress: "2001:db8::1" }],
    [`11:external ip16:${"\0".repeat(10)}\xff\xff\x05\x06\x07\x08`, { externalAddress: "5.6.7.8" }],
    ["11:external ip4:\0\0\0\0", {}],
    ["11:external ip7:5.6.7.8", {}],
    ["11:external ip0:", {}],
    ["11:external ipi5e", {}],
  ];
  for (const [members, expected] of cases) {
    const reply = announce(`d${members}8:intervali60e5:peers0:e`);
    assert.deepEqual(reply, { ok: true, peers: [], intervalSeconds: 60, ...expected }, members);
  }
});

test("decodeHttpAnnounce keeps intervals within bounds", () => {
  const interval = (text: string) => {
    const reply = announce(`d${text}5:peers0:e`);
    return reply.ok && reply.intervalSeconds;
  };
  assert.equal(interval(""), 1800);
  assert.equal(interval("8:intervali0e"), 1800);
  assert.equal(interval("8:intervali1e"), 30);
  assert.equal(interval("8:intervali999999e"), 7200);
  assert.equal(interval("8:interval3:abc"), 1800);
});

test("decodeHttpAnnounce returns a failure as a reply", () => {
  assert.deepEqual(announce("d14:failure reason8:not\n\x1bnowe"), { ok: false, reason: "not now" });
  assert.deepEqual(announce("d14:failure reason0:e"), { ok: false, reason: "the tracker gave no reason" });
});

test("decodeHttpAnnounce accepts unsorted keys and trailing bytes, and refuses malformed replies", () => {
  assert.equal(announce("d5:peers0:8:intervali60ee\r\n").ok, true);
  for (const text of ["", "<html>", "le", "d5:peers5:abcdee", "d5:peers"])
    assert.throws(() => announce(text), DecodeError);
  assert.throws(() => decodeHttpAnnounce(new Uint8Array(1024 * 1024 + 1)), /larger than/);
});

test("decodeHttpAnnounce reads at most a thousand peers", () => {
  const reply = announce(`d5:peers60000:${"\x01\x02\x03\x04\x00\x05".repeat(10_000)}e`);
  assert.equal(reply.ok && reply.peers.length, 1000);
});

test("httpScrapeUrl changes the last part of the path (BEP 48)", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["http://t.example/announce", "http://t.example/scrape"],
    ["http://t.example/x/announce", "http://t.example/x/scrape"],
    ["http://t.example/announce.php", "http://t.example/scrape.php"],
    ["http://t.example/a", undefined],
    ["http://t.example/announce?x2%0644", "http://t.example/scrape?x2%0644"],
    ["http://t.example/x%064announce", undefined],
  ];
  for (const [from, to] of cases) {
    const member = "info_hash=%01%02%03abc-._~%2F%20%FF%00%00%00%00%00%00%FF";
    const expected = to === undefined ? undefined : `${to}${to.includes("?") ? "&" : "?"}${member}`;
    assert.equal(httpScrapeUrl(from, INFOHASH), expected, from);
  }
});

test("decodeHttpScrape finds the counts of one infohash", () => {
  const key = String.fromCharCode(...fromHex(INFOHASH)!);
  const bytes = latin1Bytes(`d5:filesd20:${key}d8:completei5e10:downloadedi50e10:incompletei-3eeee`);
  assert.deepEqual(decodeHttpScrape(bytes, INFOHASH), { seeders: 5, leechers: 0, completed: 50 });
  assert.equal(decodeHttpScrape(latin1Bytes("d5:filesdee"), INFOHASH), undefined);
});

test("UDP requests have the format of BEP 15 and 41", () => {
  assert.equal(toHex(encodeUdpConnect(0x01020304)), "00000417271019800000000001020304");
  const id = fromHex("a1a2a3a4a5a6a7a8")!;
  const url = "udp://t.example:80/announce?k=1#x";
  assert.equal(
    toHex(encodeUdpAnnounce(id, 7, { ...REQUEST, url })),
    `a1a2a3a4a5a6a7a80000000100000007${INFOHASH}${toHex(REQUEST.peerId)}` +
      "0000010000000007" + // downloaded
      "0000000000000009" + // left
      "0000000000000005" + // uploaded
      "00000002" + // started
      "00000000" + // our address
      "deadbeef" +
      "00000032" +
      "1ae1" +
      `020d${toHex(latin1Bytes("/announce?k=1"))}`,
  );
  assert.equal(toHex(encodeUdpScrape(id, 7, [INFOHASH])), `a1a2a3a4a5a6a7a80000000200000007${INFOHASH}`);
});

test("encodeUdpAnnounce splits a long URL into options of 255 bytes (BEP 41)", () => {
  const path = `/${"x".repeat(299)}`;
  const bytes = encodeUdpAnnounce(new Uint8Array(8), 1, { ...REQUEST, url: `udp://t.example:80${path}` });
  assert.equal(bytes.length, 98 + 2 + 255 + 2 + 45);
  assert.deepEqual([bytes[98], bytes[99], bytes[355], bytes[356]], [2, 255, 2, 45]);
  assert.equal(
    encodeUdpAnnounce(new Uint8Array(8), 1, { ...REQUEST, url: "udp://t.example:80/" }).length,
    98,
  );
});

test("decodeUdpReply reads every response", () => {
  const decode = (hex: string, family: 4 | 6 = 4) => decodeUdpReply(fromHex(hex)!, family);
  assert.deepEqual(decode("0000000000000007a1a2a3a4a5a6a7a8"), {
    kind: "connect",
    transaction: 7,
    connectionId: fromHex("a1a2a3a4a5a6a7a8"),
  });
  const head = "0000000100000007000007080000000200000003";
  assert.deepEqual(decode(`${head}010203041ae1010203040000`), {
    kind: "announce",
    transaction: 7,
    intervalSeconds: 1800,
    leechers: 2,
    seeders: 3,
    peers: [{ host: "1.2.3.4", port: 6881 }],
  });
  const v6 = decode(`${head}20010db800000000000000000000000101bb`, 6);
  assert.deepEqual(v6.kind === "announce" && v6.peers, [{ host: "2001:db8::1", port: 443 }]);
  assert.deepEqual(decode("0000000200000007000000010000000200000003"), {
    kind: "scrape",
    transaction: 7,
    counts: [{ seeders: 1, completed: 2, leechers: 3 }],
  });
  assert.deepEqual(decode("00000003000000076f6f7073"), { kind: "error", transaction: 7, message: "oops" });
});

test("decodeUdpReply refuses truncated and unknown responses", () => {
  const bad = [
    "",
    "00000000000000",
    "0000000000000007a1a2",
    "00000001000000070000",
    "000000020000000700",
    "0000000400000007",
  ];
  for (const hex of bad) assert.throws(() => decodeUdpReply(fromHex(hex)!, 4), DecodeError, hex);
  const odd = fromHex(`0000000100000007000007080000000200000003${"01020304"}`)!;
  assert.throws(() => decodeUdpReply(odd, 4), DecodeError);
});

test("isTrackerUrl accepts only tracker URLs", () => {
  const good = [
    "http://t.example/announce",
    "HTTPS://t:1/x?y=z",
    "udp://[::1]:80",
    "udp://t.example:80/announce",
    "ws://t/announce",
    "WSS://t.example:443",
  ];
  const bad = [
    "",
    "wsss://t/announce",
    "file:///etc/passwd",
    "http://",
    "http:///x",
    "http://t/\nx",
    "http://u:p@t/x",
    "http://t/é",
  ];
  for (const url of good) assert.ok(isTrackerUrl(url), url);
  for (const url of bad) assert.ok(!isTrackerUrl(url), url);
});

test("trackerUrlProblem refuses a URL that contains parameters of the announce", () => {
  assert.equal(trackerUrlProblem("http://t.example/announce?passkey=1"), undefined);
  assert.match(trackerUrlProblem("http://t.example/announce?a=1&info_hash=x")!, /contains info_hash/);
  assert.match(trackerUrlProblem("http://t.example/announce?EVENT=stopped")!, /contains event/);
  assert.match(trackerUrlProblem("ftp://t.example/")!, /not a tracker URL/);
});

test("trackerPath returns path and query without the fragment", () => {
  assert.equal(trackerPath("udp://t.example:80/announce?k=1#x"), "/announce?k=1");
  assert.equal(trackerPath("udp://t.example:80"), "");
  assert.equal(trackerPath("udp://t.example:80?k=1"), "?k=1");
});
