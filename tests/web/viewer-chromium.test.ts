import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";
import { loadWebAssets } from "../../src/web/assets.ts";
import { staticViewer } from "../../src/web/static-viewer.ts";
import { startEngine, startSession } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { LAUNCH, openPage, VIEWER } from "./chromium-launch.ts";
import { factsOf, figuresOf, plays, until } from "./viewer-parts.ts";

const { after, before, describe, test } = await testsThatNeed("chromium");

/** A busy machine plays late. */
const SLOW = { timeout: 240_000 };
/** The rate of the test pattern. */
const BYTES_PER_SECOND = 30_000;
/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;

describe("viewers of a live stream in Chromium", { timeout: 900_000 }, () => {
  let source: BroadcastProcess;
  let browser: Browser;
  const opened: Page[] = [];
  const requests: string[] = [];
  const problems: string[] = [];

  before(async () => {
    // Upload for two copies: with three pages, some data has to come from pages.
    const flags = ["--viewer-sharing", "on", "--upload-limit", `${2.3 * BYTES_PER_SECOND}`];
    source = await startBroadcast("test-pattern", { flags });
    browser = await chromium.launch(LAUNCH);
  }, SLOW);
  after(async () => {
    await browser?.close();
    await source?.stop();
  });

  /** Opens a viewer; `script` runs in its page first. */
  const open = async (script?: () => void, url?: string): Promise<Page> => {
    const page = await openPage(browser, { ...VIEWER, faults: problems });
    opened.push(page);
    page.on("request", (request) => requests.push(request.url()));
    if (script) await page.addInitScript(script);
    await page.goto(url ?? `${source.url}/watch/${source.infohash}`);
    return page;
  };
  const closeAll = async () => {
    for (const page of opened.splice(0)) await page.close();
  };

  test(
    "three pages play, and exchange chunks; closing one does not stop the others",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const pages = [await open(), await open(), await open()];
      for (const page of pages) await plays(page, 2);
      for (const page of pages) await until(page, ({ figures }) => figures!.pages === 2);
      // What each has received in the first seconds comes from the source.
      const before = await Promise.all(pages.map(figuresOf));
      for (const page of pages) await plays(page, 8);
      const now = await Promise.all(pages.map(figuresOf));
      const sum = (name: "fromEngine" | "fromPages") =>
        now.reduce((total, each, i) => total + each[name] - before[i]![name], 0);
      const share = sum("fromPages") / (sum("fromPages") + sum("fromEngine"));
      assert.ok(share > 0.1, `only ${Math.round(100 * share)} % came from pages`);
      await pages[0]!
        .locator("#share")
        .filter({ hasText: /2 connected/ })
        .waitFor();
      if (SHOTS !== undefined) await pages[0]!.screenshot({ path: `${SHOTS}/viewer.png` });
      await opened[0]!.close();
      for (const page of pages.slice(1)) await plays(page, 3);
      for (const page of pages.slice(1)) assert.equal((await factsOf(page)).isFallback, false);
    }),
  );

  test(
    "without WebRTC, everything comes from the engine",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const page = await open(() => {
        Object.defineProperty(globalThis, "RTCPeerConnection", { value: undefined });
      });
      await plays(page, 5);
      const { figures, isFallback } = await factsOf(page);
      assert.equal(isFallback, false);
      assert.deepEqual([figures!.fromPages, figures!.toPages, figures!.pages], [0, 0, 0]);
      assert.equal(await page.isHidden("#sharing-choice"), true);
    }),
  );

  test(
    "a page that neither the engine nor another page admits plays the HLS stream of the engine",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const page = await open(undefined, "about:blank");
      // The engine closes the connection at once, as it does if it has too many of the network.
      const refused = `globalThis.WebSocket = class extends WebSocket {
        constructor(url) { super(url); this.addEventListener("open", () => this.close()); } };`;
      await page.route("**/viewer/worker.js", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: `${refused}\n${await response.text()}` });
      });
      await page.goto(`${source.url}/watch/${source.infohash}`);
      await page.uncheck("#sharing");
      await until(page, ({ isFallback }) => isFallback);
      await plays(page, 2);
    }),
  );

  test(
    "the viewer ends the exchange with the switch, and it stays off in this browser",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const [page, other] = [await open(), await open()];
      await plays(page, 1);
      await until(page, ({ figures }) => figures!.pages === 1);
      await page.uncheck("#sharing");
      await until(page, ({ figures }) => figures!.pages === 0);
      await until(other, ({ figures }) => figures!.pages === 0);
      await plays(page, 3);
      await page.reload();
      await plays(page, 1);
      assert.equal(await page.isChecked("#sharing"), false);
    }),
  );

  test(
    "a page that is reloaded starts with what it has stored, goes back to it, and continues",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const page = await open();
      await plays(page, 8);
      await page.reload();
      await plays(page, 1);
      await until(page, ({ figures }) => figures!.restoredPieces > 20);
      await plays(page, 4);
      assert.equal((await factsOf(page)).isFallback, false);
      // From before the reload.
      await page.evaluate(() => {
        const video = document.querySelector("video")!;
        video.currentTime = video.seekable.start(0) + 0.5;
      });
      await plays(page, 3);
      assert.equal((await figuresOf(page)).skippedPieces, 0);
    }),
  );

  test(
    "a page goes back to before it was opened: another page sends that part, or the engine",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      await plays(await open(), 8);
      const page = await open();
      const engineSends = /\/pieces\/\d+$/;
      await page.route(engineSends, (route) => route.abort());
      await plays(page, 1);
      const openedAt = await page.evaluate(() => document.querySelector("video")!.currentTime);
      await until(page, ({ figures }) => figures!.pages === 1);
      const goBack = (seconds: number) =>
        page.evaluate((to) => {
          const video = document.querySelector("video")!;
          video.currentTime = Math.max(video.seekable.start(0) + 0.5, to);
        }, openedAt - seconds);
      // This page starts with the last complete segment; the other one has 8 s.
      await goBack(6);
      await until(page, ({ figures }) => figures!.earlierFromPages > 0);
      await plays(page, 1);
      await page.unroute(engineSends);
      await page.uncheck("#sharing");
      await until(page, ({ figures }) => figures!.pages === 0);
      await goBack(60);
      await until(page, ({ figures }) => figures!.earlierFromEngine > 0);
      await plays(page, 1);
      assert.equal((await factsOf(page)).isFallback, false);
    }),
  );

  test(
    "a page in the background or in data-saving mode stays with the others, and uploads only if the viewer allows it",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const pages = [await open(hideable), await open(hideable), await open(hideable)];
      for (const page of pages) await plays(page, 1);
      // The engine's upload is enough for two of them.
      const busy = await Promise.any(
        pages.map(async (page) => {
          await until(page, ({ figures }) => figures!.children > 0 && figures!.uploads);
          return page;
        }),
      );
      const setHidden = (isHidden: boolean) =>
        busy.evaluate((hidden) => {
          Object.assign(globalThis, { isTestHidden: hidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }, isHidden);
      await setHidden(true);
      await until(busy, ({ figures }) => !figures!.uploads && figures!.children === 0);
      await plays(busy, 3);
      assert.equal((await figuresOf(busy)).children, 0);
      // On a busy machine, a page that is silent for some seconds is called again.
      await until(busy, ({ figures }) => figures!.pages === 2);
      await busy.check("#sharing-always");
      await until(busy, ({ figures }) => figures!.uploads);
      await busy.uncheck("#sharing-always");
      await until(busy, ({ figures }) => !figures!.uploads);
      await setHidden(false);
      await until(busy, ({ figures }) => figures!.uploads);
      const saving = await open(() => {
        Object.defineProperty(navigator, "connection", {
          value: Object.assign(new EventTarget(), { saveData: true }),
        });
      });
      await plays(saving, 2);
      await until(saving, ({ figures }) => figures!.pages > 0);
      assert.equal((await figuresOf(saving)).uploads, false);
    }),
  );

  test(
    "a page that sends wrong bytes is dropped, and none of them is played",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const poison = () => {
        const { send } = RTCDataChannel.prototype;
        let messages = 0;
        RTCDataChannel.prototype.send = function (this: RTCDataChannel, data: never) {
          const bytes = new Uint8Array(data as ArrayBuffer);
          // Long messages contain chunks. Their last bytes are media.
          if (bytes.length > 1_000 && messages++ > 3) bytes[bytes.length - 10]! ^= 0xff;
          (send as (data: unknown) => void).call(this, bytes);
        } as never;
      };
      const poisoner = await open(poison);
      await plays(poisoner, 2);
      const victims = [await open(watchSegments), await open(watchSegments)];
      for (const page of victims) await plays(page, 2);
      // At least one of them gets chunks from the poisoner.
      await Promise.any(victims.map((page) => until(page, ({ figures }) => figures!.banned > 0)));
      for (const page of victims) {
        let checked = { compared: 0, wrong: [] as string[] };
        while (checked.compared < 2) {
          await plays(page, 2);
          checked = await page.evaluate(checkSegments, source.infohash);
          assert.deepEqual(checked.wrong, []);
        }
        assert.equal((await factsOf(page)).isFallback, false);
      }
    }),
  );

  test(
    "a page of another site shows the page in a frame",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const frameUrl = `${source.url}/watch/${source.infohash}?embed=1`;
      const site = createServer((_, response) => {
        response.setHeader("content-type", "text/html");
        response.end(`<iframe src="${frameUrl}" allow="autoplay" width="640" height="400"></iframe>`);
      });
      await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
      const page = await open();
      await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`).catch(() => {});
      const frame = await (await page.waitForSelector("iframe")).contentFrame();
      await frame!.waitForFunction(() => (document.querySelector("video")?.currentTime ?? 0) > 1);
      assert.equal(await frame!.evaluate(() => document.documentElement.className), "embedded");
      site.close();
    }),
  );

  test(
    "the page of `sluice viewer-page` plays on another web server, and exchanges chunks with a page of the engine",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const files = await staticViewer(loadWebAssets, {
        engine: new URL(`${source.url}/`),
        infohash: source.infohash,
      });
      const site = createServer(({ url = "/" }, response) => {
        const name = url === "/" ? "index.html" : url.slice(1);
        const type = name.endsWith(".js")
          ? "text/javascript"
          : name.endsWith(".css")
            ? "text/css"
            : "text/html";
        response.writeHead(files.has(name) ? 200 : 404, { "content-type": type });
        response.end(files.get(name));
      });
      await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
      const other = await open();
      const page = await open(undefined, `http://localhost:${(site.address() as AddressInfo).port}/`);
      for (const each of [other, page]) await plays(each, 2);
      for (const each of [other, page]) await until(each, ({ figures }) => figures!.pages === 1);
      assert.equal((await factsOf(page)).isFallback, false);
      await page.context().close();
      site.close();
    }),
  );

  test(
    "pages of two engines exchange chunks if a tracker introduces them",
    SLOW,
    inRealTime(async () => {
      await closeAll();
      const viewer = await startEngine({
        env: { SLUICE_TRACKER_SERVER: "open", SLUICE_VIEWER_SHARING: "on" },
      });
      const tracker = `${viewer.url.replace("http", "ws")}/announce`;
      // Upload for less than the other engine and a page, so that the pages have to exchange chunks.
      const upload = ["--upload-limit", `${1.5 * BYTES_PER_SECOND}`];
      const tracked = await startBroadcast("test-pattern", {
        flags: ["--viewer-sharing", "on", "--tracker", tracker, ...upload],
      });
      try {
        await startSession(viewer, "getstream", { magnet: tracked.magnet });
        // The source tells the address of the tracker once a second.
        const settings = `${viewer.url}/swarm/${tracked.infohash}/settings`;
        while (!(await (await fetch(settings)).text()).includes(tracker))
          await new Promise((resolve) => setTimeout(resolve, 200));
        const pages = [
          await open(undefined, `${tracked.url}/watch/${tracked.infohash}`),
          await open(undefined, `${viewer.url}/watch/${tracked.infohash}`),
        ];
        for (const page of pages) await plays(page, 2);
        for (const page of pages) await until(page, ({ figures }) => figures!.pages === 1);
        await Promise.any(pages.map((page) => until(page, ({ figures }) => figures!.fromPages > 60_000)));
        for (const page of pages) assert.equal((await factsOf(page)).isFallback, false);
      } finally {
        await closeAll();
        // The last test expects one engine.
        const urls = [tracked.url, viewer.url];
        requests.splice(
          0,
          requests.length,
          ...requests.filter((url) => !urls.some((own) => url.startsWith(own))),
        );
        await Promise.all([tracked.stop(), viewer.stop()]);
      }
    }),
  );

  test("no request left the engine, no script failed, and nothing violated the content security policy", () => {
    // `blob:` URLs of the video, and the web site of the test.
    const others = requests.filter((url) => !/^(?:blob:|http:\/\/localhost:\d+\/)/.test(url));
    assert.deepEqual([...new Set(others.map((url) => new URL(url).origin))], [new URL(source.url).origin]);
    assert.deepEqual(problems, []);
  });
});

/** Lets the test say whether the page is in the background. */
function hideable(): void {
  Object.defineProperty(document, "visibilityState", {
    get: () => ((globalThis as unknown as { isTestHidden?: boolean }).isTestHidden ? "hidden" : "visible"),
  });
}

/** Collects the parts that hls.js gets from the worker, by their name. */
function watchSegments(): void {
  const parts: Record<string, ArrayBuffer> = {};
  const paths: Record<number, string> = {};
  const Plain = Worker;
  Object.assign(globalThis, { loadedParts: parts });
  globalThis.Worker = class extends Plain {
    constructor(url: string | URL) {
      super(url);
      this.addEventListener("message", ({ data }) => {
        if (data.kind === "loaded") parts[paths[data.id]!] = data.bytes.slice(0);
      });
    }

    override postMessage(...[message, transfer]: [message: never, transfer: never]): void {
      const { kind, id, path } = message as { kind: string; id: number; path: string };
      if (kind === "load") paths[id] = path;
      super.postMessage(message, transfer);
    }
  } as typeof Worker;
}

/**
 * Compares the packets of the segments that were collected with those of the engine. A late page may lack packets, but has no
 * others.
 */
async function checkSegments(infohash: string): Promise<{ compared: number; wrong: string[] }> {
  const loaded = (globalThis as unknown as { loadedParts: Record<string, ArrayBuffer> }).loadedParts;
  const result = { compared: 0, wrong: [] as string[] };
  const packetsOf = (buffer: ArrayBuffer) =>
    Array.from({ length: buffer.byteLength / 188 }, (_, i) => new Uint8Array(buffer, 188 * i, 188).join());
  const numberOf = (path: string) => /^(\d+)\.(?:p\d+\.)?ts$/.exec(path)?.[1];
  const numbers = new Set(Object.keys(loaded).flatMap((path) => numberOf(path) ?? []));
  // The engine may still receive the rest of the newest one.
  for (const number of [...numbers].sort((a, b) => Number(a) - Number(b)).slice(0, -1)) {
    const response = await fetch(`../live/${infohash}/${number}.ts`);
    if (!response.ok) continue;
    const right = new Set(packetsOf(await response.arrayBuffer()));
    for (const path of Object.keys(loaded).filter((each) => numberOf(each) === number))
      if (packetsOf(loaded[path]!).some((packet) => !right.has(packet))) result.wrong.push(path);
    result.compared++;
  }
  return result;
}
