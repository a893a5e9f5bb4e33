import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";
import { PAGES } from "./journeys.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

/** A busy machine is late. */
const SLOW = { timeout: 120_000 };
/** The most that the place Watch loads before a player is needed, in compressed bytes. */
const FIRST_LOAD_BYTES = 150_000;

/** A television of 2019. */
const TELEVISION = {
  viewport: { width: 1920, height: 1080 },
  userAgent:
    "Mozilla/5.0 (SMART-TV; Linux; Tizen 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/69.0.3497.106 TV Safari/537.36",
} as const;

/** Runs in the page before its scripts: removes functions that Chromium 69 does not have. */
function forgetNewFunctions(): void {
  const missing: readonly (readonly [owner: object | undefined, ...names: string[]])[] = [
    [Array.prototype, "at", "findLast", "findLastIndex", "toReversed", "toSorted", "toSpliced", "with"],
    [String.prototype, "at", "matchAll", "replaceAll", "isWellFormed", "toWellFormed"],
    [Object, "fromEntries", "groupBy", "hasOwn"],
    [Map, "groupBy"],
    [Promise, "allSettled", "any", "try", "withResolvers"],
    [AbortSignal, "any", "timeout"],
    [AbortSignal.prototype, "throwIfAborted"],
    [Element.prototype, "replaceChildren", "checkVisibility", "requestFullscreen"],
    [Document.prototype, "replaceChildren", "exitFullscreen", "fullscreenElement"],
    [DocumentFragment.prototype, "replaceChildren"],
    [Blob.prototype, "arrayBuffer", "text", "stream"],
    [Response, "json"],
    [URL, "canParse", "parse"],
    [Intl, "ListFormat", "DisplayNames", "Locale", "RelativeTimeFormat", "Segmenter"],
    [Navigator.prototype, "mediaSession", "locks", "wakeLock", "share"],
    [ReadableStream.prototype, "values"],
    [window, "queueMicrotask", "structuredClone", "WeakRef", "FinalizationRegistry"],
    [window, "TextDecoderStream", "TextEncoderStream", "CompressionStream", "DecompressionStream"],
    [window, "scheduler", "navigation", "reportError", "CSSStyleSheet"],
  ];
  for (const [owner, ...names] of missing)
    for (const name of names) if (owner !== undefined) delete (owner as Record<string, unknown>)[name];
  // Listeners that a signal removes came with Chromium 88.
  const { addEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    const { signal: _, ...known } = typeof options === "object" ? options : { capture: options === true };
    addEventListener.call(this, type, listener, known);
  };
}

describe("the app in a browser without the functions of the years after 2018", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;
  let magnet: string;
  const faults: string[] = [];

  before(async () => {
    scratch = await tempFolder("old-browser");
    const films = scratch.file("films");
    await mkdir(films);
    await run("ffmpeg", [
      ...["-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=20"],
      ..."-c:v libx264 -preset veryfast -g 50 -pix_fmt yuv420p".split(" "),
      `${films}/film.mp4`,
    ]);
    const torrent = await torrentOf(films, 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=films&x.pe=127.0.0.1:${seeder.port}`;
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
    page = await openPage(browser, { ...TELEVISION, faults });
    await page.addInitScript(forgetNewFunctions);
    await page.goto(`${engine.url}/`);
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  test("the text is large on a television", SLOW, async () => {
    await page.locator("html[data-size=large]").waitFor();
  });

  test(
    "a link is added to the playlist, found by the search, and plays",
    SLOW,
    inRealTime(async () => {
      await page.fill("#link", magnet);
      await page.click("#add");
      await page.fill("#playlist-search", "films");
      await page.locator("#playlist-count", { hasText: /^1 item$/ }).waitFor();
      await page.click(".item-star");
      await page.locator(".item-star[aria-pressed=true]").waitFor();
      await page.click(".item-play");
      await page.waitForFunction(
        () => (document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > 25,
      );
      await page.locator(".stage.theatre").waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await page.click("#stop");
    }),
  );

  test("the guide, the recordings and the profiles open and close", SLOW, async () => {
    for (const button of ["#guide-grid", "#guide", "#recordings", "#profile", "#display"]) {
      await page.click(button);
      await page.locator("dialog[open]").waitFor();
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
    }
  });

  test("every page opens", SLOW, async () => {
    for (const [route, ready] of Object.entries(PAGES)) {
      await page.goto(`${engine.url}/#/${route}`);
      await page.locator(ready).locator("visible=true").first().waitFor();
    }
  });

  test("a setting is saved and is there after a reload", SLOW, async () => {
    await page.goto(`${engine.url}/#/control/settings/download-limit`);
    await page.fill("#setting-download-limit", "3MB");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator(".settings-state", { hasText: /^Saved/ }).waitFor();
    await page.reload();
    await page.locator("#setting-download-limit").waitFor();
    assert.equal(await page.inputValue("#setting-download-limit"), "3MB");
  });

  test("no script failed", () => {
    assert.deepEqual(faults, []);
  });

  test("the first load is at most 150 kB compressed", SLOW, async () => {
    const visitor = await browser.newPage();
    await visitor.goto(`${engine.url}/`);
    await visitor.locator("#playlist-count:not(:empty)").waitFor();
    const bytes = await visitor.evaluate(() =>
      [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .map((entry) => entry as PerformanceResourceTiming)
        .filter(({ name }) => !/\/(?:api|server)\//.test(name))
        .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
    );
    assert.ok(bytes > 20_000 && bytes <= FIRST_LOAD_BYTES, `${bytes} bytes`);
  });
});
