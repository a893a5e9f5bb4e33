import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, nameContent, type RuntimeName, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH } from "../web/chromium-launch.ts";
import { figuresOf, plays } from "../web/viewer-parts.ts";

const BUNDLE = fileURLToPath(
  new URL("./webtorrent/node_modules/webtorrent/dist/webtorrent.min.js", import.meta.url),
);
const SIZE_BYTES = 4 * 1024 * 1024 + 321;
const { test } = await testsThatNeed("webtorrent", "chromium", "ffmpeg");

for (const runtime of ["bun", "deno", "node"] satisfies RuntimeName[]) {
  test(`a file that only a browser seeds plays on ${runtime}, and a browser downloads it from the engine`, {
    timeout: 180_000,
  }, async () => {
    const env = { SLUICE_TRACKER_SERVER: "open", SLUICE_WEBRTC: "on", SLUICE_LOG: "debug" };
    const engine = await startEngine({ runtime, env });
    const site = await serveBundle();
    let browser: Browser | undefined;
    try {
      browser = await chromium.launch(LAUNCH);
      const tracker = `${engine.url.replace("http", "ws")}/announce`;
      const seeding = await openPage(browser, site.url);
      const seeded = await seeding.evaluate(SEED, { at: site.url, tracker, length: SIZE_BYTES });
      await downloads(engine, seeded);
      await seeding.close();
      const leeching = await openPage(browser, site.url);
      const hash = await leeching.evaluate(LEECH, { at: site.url, tracker, magnet: seeded.magnet });
      assert.equal(hash, seeded.hash);
    } catch (error) {
      throw new Error(`${error}\nthe engine printed:\n${engine.output().slice(-6000)}`);
    } finally {
      await browser?.close();
      site.close();
      await engine.stop();
    }
  });
}

test("the page for viewers plays a film with the pieces of a WebTorrent page", {
  timeout: 240_000,
}, async () => {
  const scratch = await tempFolder("webtorrent-film");
  const film = scratch.file("film.mkv");
  await run("ffmpeg", [
    ...["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=30"],
    ...["-c:v", "libx264", "-preset", "veryfast", "-g", "50", "-pix_fmt", "yuv420p", film],
  ]);
  const torrent = await torrentOf(film, 64 * 1024, scratch.file("film.torrent"));
  const seeder = await startSeeder(torrent, scratch.path);
  // The engine may send a tenth of what the film needs, and its HTTP interface nothing.
  const engine = await startEngine({
    env: { SLUICE_TRACKER_SERVER: "open", SLUICE_VIEWER_SHARING: "on", SLUICE_UPLOAD_LIMIT: "10000" },
  });
  const site = await serveBundle([film, scratch.file("film.torrent")]);
  let browser: Browser | undefined;
  try {
    const tracker = `${engine.url.replace("http", "ws")}/announce`;
    const peer = `x.pe=127.0.0.1:${seeder.port}`;
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&tr=${encodeURIComponent(tracker)}&${peer}`;
    const stream = await fetch(`${engine.url}/ace/getstream?magnet=${encodeURIComponent(magnet)}`);
    await stream.arrayBuffer();
    await seeder.stop();
    browser = await chromium.launch(LAUNCH);
    const seeding = await openPage(browser, site.url);
    await seeding.evaluate(SEED_FILM, { at: site.url, tracker });
    const page = await browser.newPage();
    page.setDefaultTimeout(100_000);
    await page.route("**/vod/**/*.ts", (route) => route.abort());
    await page.goto(`${engine.url}/watch/${torrent.infohash}`);
    await plays(page, 10);
    const { fromEngine, fromPages } = await figuresOf(page);
    assert.ok(fromPages > fromEngine, `${fromPages} bytes of WebTorrent, ${fromEngine} of the engine`);
  } finally {
    await browser?.close();
    site.close();
    await engine.stop();
    await scratch.remove();
  }
});

interface Seeded {
  readonly magnet: string;
  readonly infohash: string;
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
}

/** Downloads by the magnet alone, and reports the time to the first byte. */
async function downloads(engine: EngineProcess, { magnet, infohash, hash }: Seeded): Promise<void> {
  const began = performance.now();
  await nameContent(engine, { magnet });
  const response = await fetch(`${engine.url}/files/${infohash}/0/film.bin`);
  assert.equal(response.status, 200);
  const sum = createHash("sha256");
  let first: number | undefined;
  for await (const bytes of response.body!) {
    first ??= performance.now() - began;
    sum.update(bytes);
  }
  const seconds = (performance.now() - began) / 1000;
  const rate = (8 * SIZE_BYTES) / 1e6 / seconds;
  console.log(`WebRTC: first byte from a magnet ${Math.round(first!)} ms, ${rate.toFixed(1)} Mbit/s`);
  assert.equal(sum.digest("hex"), hash);
}

/** Serves WebTorrent's bundle, an empty page, and files under their names. */
async function serveBundle(files: readonly string[] = []): Promise<{ url: string; close(): void }> {
  const bundle = await readFile(BUNDLE);
  const served = new Map<string, Buffer>();
  for (const path of files) served.set(`/${basename(path)}`, await readFile(path));
  const server = createServer((request, response) => {
    const file = served.get(request.url ?? "");
    if (file) {
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
      response.statusCode = from === undefined ? 200 : 206;
      response.end(from === undefined ? file : file.subarray(Number(from), Number(to) + 1));
      return;
    }
    const isScript = request.url === "/webtorrent.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? bundle : "<!doctype html><title>page</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => server.close() };
}

async function openPage(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage();
  page.setDefaultTimeout(100_000);
  await page.goto(url);
  return page;
}

/** Runs in the page: seeds pseudo-random bytes. */
const SEED = async (options: { at: string; tracker: string; length: number }): Promise<Seeded> => {
  const { default: WebTorrent } = await import(`${options.at}/webtorrent.js`);
  const client = new WebTorrent({ tracker: { announce: [] }, dht: false });
  const words = new Uint32Array(Math.ceil(options.length / 4));
  for (let i = 0, state = 1; i < words.length; i++) words[i] = state = Math.imul(state, 1664525) + 1013904223;
  const bytes = new Uint8Array(words.buffer, 0, options.length);
  const hash = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  const torrent = client.seed(new File([bytes], "film.bin"), { announce: [options.tracker] });
  // The page is in the swarm when the tracker has answered.
  await new Promise((resolve) => torrent.once("trackerAnnounce", resolve));
  return { magnet: torrent.magnetURI, infohash: torrent.infoHash, hash };
};

/** Runs in the page: seeds the film of the site, which it gets from the site. */
const SEED_FILM = async (options: { at: string; tracker: string }): Promise<void> => {
  const { default: WebTorrent } = await import(`${options.at}/webtorrent.js`);
  const client = new WebTorrent({ tracker: { announce: [] }, dht: false });
  const file = new Uint8Array(await (await fetch(`${options.at}/film.torrent`)).arrayBuffer());
  const torrent = client.add(file, { announce: [options.tracker] });
  await new Promise((resolve) => torrent.once("ready", resolve));
  torrent.addWebSeed(`${options.at}/film.mkv`);
  await new Promise((resolve) => torrent.once("done", resolve));
};

/** Runs in another page: returns the SHA-256 of the file that a magnet names. */
const LEECH = async (options: { at: string; tracker: string; magnet: string }): Promise<string> => {
  const { default: WebTorrent } = await import(`${options.at}/webtorrent.js`);
  const client = new WebTorrent({ tracker: { announce: [] }, dht: false });
  return new Promise((resolve) => {
    // biome-ignore lint/suspicious/noExplicitAny: a library without types.
    client.add(options.magnet, { announce: [options.tracker] }, (torrent: any) => {
      torrent.on("done", async () => {
        const bytes = await (await torrent.files[0].blob()).arrayBuffer();
        const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
        resolve([...hash].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
      });
    });
  });
};
