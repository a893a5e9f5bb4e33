import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, nameContent, type RuntimeName, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { LAUNCH } from "../web/chromium-launch.ts";

const BUNDLE = fileURLToPath(
  new URL("./webtorrent/node_modules/webtorrent/dist/webtorrent.min.js", import.meta.url),
);
const SIZE_BYTES = 4 * 1024 * 1024 + 321;
const { test } = await testsThatNeed("webtorrent", "chromium");

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

/** Serves WebTorrent's bundle and an empty page. */
async function serveBundle(): Promise<{ url: string; close(): void }> {
  const bundle = await readFile(BUNDLE);
  const server = createServer((request, response) => {
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
