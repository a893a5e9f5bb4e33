import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import { RateLimit, URGENCY } from "../../src/base/rate-limit.ts";
import { WebPeers } from "../../src/engine/web-peers.ts";
import { UploadLimit } from "../../src/live/upload-limit.ts";
import { parseTransportFile } from "../../src/wire/torrent/metainfo.ts";
import { type MadeTorrent, makeTorrent, sha1 } from "../wire/make-torrent.ts";
import { FakeClock } from "./fake-clock.ts";

const INFOHASH = "ab".repeat(20) as Infohash;

/** The trackers that pages of an engine at `host` use, if a broadcaster names `urls`. */
async function trackersOf(urls: readonly string[], host: string): Promise<readonly string[]> {
  let released = 0;
  const live = { content: { file: { trackers: urls.map((url) => [url]) } } };
  const lease = { transfer: { live }, release: () => released++ };
  const peers = new WebPeers({
    ...{ transfers: {} as never, segmentSeconds: 6, clock: new FakeClock() },
    acquire: async () => lease as never,
  });
  const { trackers } = await peers.describe(INFOHASH, host);
  assert.equal(released, 1);
  return trackers;
}

test("WebPeers: pages contact WebSocket trackers with public names and certificates, and those of their engine's host", async () => {
  const allowed = [
    "wss://tracker.example.org:443/announce",
    "wss://[2001:db8:1::1]/",
    "ws://10.0.0.2:6878/announce",
  ];
  assert.deepEqual(await trackersOf(["udp://tracker.example.org:80", ...allowed], "10.0.0.2"), allowed);
  assert.deepEqual(await trackersOf(["wss://93.184.216.34/announce"], "10.0.0.2"), [
    "wss://93.184.216.34/announce",
  ]);
});

test("WebPeers: a broadcaster cannot make pages contact devices of their network, or widen their policy", async () => {
  const refused = [
    "ws://tracker.example.org/announce",
    "wss://192.168.1.1/",
    "wss://[fe80::1]/",
    "wss://[::ffff:10.0.0.1]/",
    "wss://2130706433/",
    "wss://router/",
    "wss://printer.local/",
    "wss://nas.home.arpa/",
    "wss://localhost/",
    "wss://a.example;x.example/",
    "wss://*.example.org/",
    "https://tracker.example.org/announce",
    "wss://",
  ];
  for (const url of refused) assert.deepEqual(await trackersOf([url], "tv.example.org"), [], url);
});

test("WebPeers: a page uses three trackers at most", async () => {
  const urls = Array.from({ length: 5 }, (_, i) => `wss://t${i}.example.org/`);
  assert.deepEqual(await trackersOf(urls, "tv.example.org"), urls.slice(0, 3));
});

const FILM = { name: "a.mkv", files: [{ path: "a.mkv", bytes: new Uint8Array(100) }], pieceLength: 16_384 };

/** A WebPeers whose engine has this torrent open. */
function peersOf(torrent: MadeTorrent): WebPeers {
  const file = parseTransportFile(torrent.bytes, sha1);
  const transfer = { name: "film", files: [], live: undefined, transportFile: () => file };
  return new WebPeers({
    ...{ transfers: { get: () => transfer } as never, segmentSeconds: 6, clock: new FakeClock() },
    acquire: async () => ({ transfer, release() {} }) as never,
  });
}

test("WebPeers: pages get the transport file of a film without its trackers, which may contain a secret", async () => {
  const torrent = makeTorrent({ ...FILM, trackers: [["https://tracker.example/secret/announce"]] });
  const bytes = await peersOf(torrent).transportFile(INFOHASH);
  assert.equal(parseTransportFile(bytes, sha1).infohash, torrent.infohash);
  assert.ok(!Buffer.from(bytes).includes("secret"));
});

test("WebPeers: pages get nothing of a private torrent", async () => {
  const peers = peersOf(makeTorrent({ ...FILM, private: true }));
  await assert.rejects(peers.transportFile(INFOHASH), { code: "unsupported_content" });
  await assert.rejects(peers.describe(INFOHASH, "tv.example.org"), { code: "unsupported_content" });
});

/** Requests a segment of 300,000 bytes from an engine with an upload limit of 100,000 bytes per second. */
async function requestSegment(host: string) {
  const clock = new FakeClock();
  const limit = new UploadLimit(
    0,
    new RateLimit(100_000).budget(() => URGENCY.live),
  );
  const bytes = new Uint8Array(300_000).map((_, i) => i % 251);
  const live = {
    pieces: { segment: async () => bytes },
    uploadAllowance: (to: string) => (to.startsWith("10.") ? undefined : limit),
  };
  const peers = new WebPeers({
    ...{ clock, transfers: {} as never, segmentSeconds: 6 },
    acquire: async () => ({ transfer: { live }, release() {} }) as never,
  });
  const stream = await peers.pieces(INFOHASH, host, {}, (pieces) => pieces.segment(7));
  return { bytes, clock, reader: stream.getReader() };
}

test("WebPeers.pieces: the upload limit applies to earlier segments, but not in the local network", async () => {
  const near = await requestSegment("10.0.0.2");
  assert.deepEqual((await near.reader.read()).value, near.bytes);
  const { bytes, clock, reader } = await requestSegment("93.184.216.34");
  const chunks: Uint8Array[] = [];
  const read = (async () => {
    for (let each = await reader.read(); !each.done; each = await reader.read()) chunks.push(each.value);
  })();
  const received = () => chunks.reduce((sum, { length }) => sum + length, 0);
  await clock.advance(1_000);
  assert.ok(received() >= 80_000 && received() <= 100_000 + 2 * 32_768, `${received()} bytes in a second`);
  await clock.advance(3_000);
  await read;
  assert.deepEqual(Buffer.concat(chunks), Buffer.from(bytes));
});

test("WebPeers.pieces: a page that leaves while its segment waits costs no timer", async () => {
  const { clock, reader } = await requestSegment("93.184.216.34");
  const read = reader.read();
  await clock.advance(0);
  assert.equal(clock.waiting, 1);
  await reader.cancel();
  await read;
  assert.equal(clock.waiting, 0);
});
