import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Browser, chromium } from "playwright-core";
import { runtime } from "#runtime";
import type { Infohash } from "../../src/base/ids.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createAnnouncer } from "../../src/net/announcer.ts";
import { createOutbound } from "../../src/outbound/outbound.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";
import { announceRequest } from "../parts/announce-request.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH } from "../web/chromium-launch.ts";
import { aria2, type ForeignPeer, libtorrent, transmission } from "./other-peers.ts";

const WEBTORRENT = fileURLToPath(new URL("./webtorrent", import.meta.url));
const BUNDLE = `${WEBTORRENT}/node_modules/webtorrent/dist/webtorrent.min.js`;
const { test: peersTest } = await testsThatNeed("libtorrent", "transmission", "aria2");
const { test: webtorrentTest } = await testsThatNeed("webtorrent");
const { test: pagesTest } = await testsThatNeed("webtorrent", "chromium");

const SIZE_BYTES = 1024 * 1024 + 321;

/** aria2 uses UDP trackers only if its DHT is on. */
const PAIRS: readonly (readonly [seed: ForeignPeer, leech: ForeignPeer, scheme: "http" | "udp"])[] = [
  [libtorrent, libtorrent, "http"],
  [libtorrent, libtorrent, "udp"],
  [transmission, libtorrent, "http"],
  [transmission, libtorrent, "udp"],
  [aria2, libtorrent, "http"],
  [libtorrent, aria2, "http"],
];

peersTest(
  "our tracker brings together libtorrent, transmission and aria2, over HTTP and over UDP",
  {
    timeout: 200_000,
  },
  async () => {
    const engine = await startEngine({ env: { SLUICE_TRACKER_SERVER: "open" } });
    try {
      const outcomes = await Promise.allSettled(PAIRS.map((pair) => meet(engine, ...pair)));
      const problems = outcomes.flatMap((outcome, i) =>
        outcome.status === "fulfilled"
          ? []
          : [`${PAIRS[i]!.map((part) => (typeof part === "string" ? part : part.name))}: ${outcome.reason}`],
      );
      assert.deepEqual(problems, []);
    } finally {
      await engine.stop();
    }
  },
);

/** A seeder and a leecher that use only our tracker. */
async function meet(
  engine: EngineProcess,
  seed: ForeignPeer,
  leech: ForeignPeer,
  scheme: "http" | "udp",
): Promise<void> {
  const scratch = await tempFolder(`own-tracker-${seed.name}-${leech.name}`);
  const ends: (() => Promise<unknown>)[] = [];
  try {
    await Promise.all(["seed", "leech"].map((name) => mkdir(scratch.file(name))));
    const file = scratch.file("seed/film.bin");
    await randomFile(file, SIZE_BYTES);
    const url = scheme === "http" ? `${engine.url}/announce` : `udp://127.0.0.1:${engine.p2pPort}/announce`;
    const torrent = await torrentOf(file, 64 * 1024, scratch.file("film.torrent"), [url]);
    const seeder = await seed.seed(torrent.path, file, scratch.path);
    ends.push(seeder.process.stop);
    // Otherwise the leecher gets an empty peer list and announces again only after a minute.
    const query = `info_hash=${torrent.infohash.replace(/../g, "%$&")}`;
    await until(async () => {
      const answer = await (await fetch(`${engine.url}/scrape?${query}`)).text();
      return /8:completei[1-9]/.test(answer);
    }, seeder.process.output);
    const leecher = await leech.leech(torrent.path, scratch.file("leech"), scratch.path, "127.0.0.1:1");
    ends.push(leecher.process.stop);
    const [wanted, got] = [await sha1OfFile(file), scratch.file("leech/film.bin")];
    await until(async () => existsSync(got) && (await sha1OfFile(got)) === wanted, leecher.process.output);
  } finally {
    for (const end of ends.reverse()) await end();
    await scratch.remove();
  }
}

const announceTo = (url: string, infohash: string, more: Partial<AnnounceRequest>) =>
  announceRequest(url, {
    infohash: infohash as Infohash,
    peerId: new Uint8Array(20).fill(65),
    port: 8621,
    ...more,
  });

webtorrentTest(
  "WebTorrent's tracker counts us over a WebSocket and reports the number of other peers",
  {
    timeout: 100_000,
  },
  async () => {
    const tracker = startProcess("bun", [`${WEBTORRENT}/tracker.mjs`], { cwd: WEBTORRENT });
    const announcer = createAnnouncer(runtime, createOutbound(runtime, SILENT_LOG), SILENT_LOG);
    try {
      const line = await tracker.line((text) => text.includes('"listening"'));
      const url = `ws://127.0.0.1:${(JSON.parse(line) as { port: number }).port}/announce`;
      const home = { allowPrivate: true };
      const [ONE, TWO] = ["f1".repeat(20), "02".repeat(20)];
      const seed = { peerId: new Uint8Array(20).fill(0xf1), left: 0 };
      const first = await announcer.announce(announceTo(url, ONE, seed), home);
      assert.deepEqual(first.ok && first.counts, { seeders: 1, leechers: 0 }, JSON.stringify(first));
      const [second, other] = await Promise.all([
        announcer.announce(announceTo(url, ONE, {}), home),
        announcer.announce(announceTo(url, TWO, {}), home),
      ]);
      assert.deepEqual(second.ok && second.counts, { seeders: 1, leechers: 1 });
      assert.deepEqual(other.ok && other.counts, { seeders: 0, leechers: 1 });
      const scraped = await announcer.scrape(url, ONE as Infohash, home);
      assert.deepEqual([scraped?.seeders, scraped?.leechers], [1, 1]);
      const gone = await announcer.announce(announceTo(url, ONE, { event: "stopped" }), home);
      assert.deepEqual(gone.ok && gone.counts, { seeders: 1, leechers: 0 });
      assert.doesNotMatch(tracker.output(), /"(?:error|warning)"/);
    } finally {
      announcer.close();
      await tracker.stop();
    }
  },
);

pagesTest(
  "two WebTorrent pages find each other by our tracker's WebSocket, and one loads from the other",
  {
    timeout: 150_000,
  },
  async () => {
    const engine = await startEngine({ env: { SLUICE_TRACKER_SERVER: "open" } });
    const bundle = await readFile(BUNDLE);
    const pages = createServer((request, response) => {
      const isScript = request.url === "/webtorrent.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? bundle : "<!doctype html><title>peer</title>");
    });
    await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
    const at = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
    let browser: Browser | undefined;
    try {
      // Otherwise Chromium hides addresses behind multicast DNS names, which cannot be resolved without a network.
      const args = [...LAUNCH.args, "--disable-features=WebRtcHideLocalIpsWithMdns"];
      browser = await chromium.launch({ ...LAUNCH, args });
      const [seeding, leeching] = [await browser.newPage(), await browser.newPage()];
      for (const page of [seeding, leeching]) {
        page.setDefaultTimeout(75_000);
        await page.goto(at);
      }
      const tracker = `${engine.url.replace("http", "ws")}/announce`;
      const magnet = await seeding.evaluate(SEED, [at, tracker]);
      const text = await leeching.evaluate(LEECH, [at, tracker, magnet]);
      assert.equal(text, "a film ".repeat(10_000));
    } finally {
      await browser?.close();
      pages.close();
      await engine.stop();
    }
  },
);

/** Runs in the page: seeds a file and returns its magnet. */
const SEED = async ([at, tracker]: readonly string[]): Promise<string> => {
  const { default: WebTorrent } = await import(`${at}/webtorrent.js`);
  const client = new WebTorrent({ tracker: { announce: [] }, dht: false });
  const file = new File(["a film ".repeat(10_000)], "film.txt");
  return new Promise((resolve) => {
    client.seed(file, { announce: [tracker] }, (torrent: { magnetURI: string }) =>
      resolve(torrent.magnetURI),
    );
  });
};

/** Runs in the other page: the text of the file that a magnet names. */
const LEECH = async ([at, tracker, magnet]: readonly string[]): Promise<string> => {
  const { default: WebTorrent } = await import(`${at}/webtorrent.js`);
  const client = new WebTorrent({ tracker: { announce: [] }, dht: false });
  return new Promise((resolve) => {
    // biome-ignore lint/suspicious/noExplicitAny: a library without types.
    client.add(magnet, { announce: [tracker] }, (torrent: any) => {
      torrent.on("done", async () => resolve(await (await torrent.files[0].blob()).text()));
    });
  });
};

/** Polls a condition every 100 ms; rejects with the last output if it is still false after a minute. */
async function until(isTrue: () => Promise<boolean>, said: () => string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await isTrue()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the condition did not become true; last output:\n${said().slice(-2000)}`);
}
