import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, freePort, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { LAUNCH } from "./chromium-launch.ts";

/** A machine that does other things too plays late. */
const SLOW = { timeout: 90_000 };

/** A folder for screenshots that somebody wants to look at. */
const SHOTS = process.env.PAGE_SCREENSHOTS;

describe("a live stream on the start page in Chromium", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let source: BroadcastProcess;
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;
  let options: { dataDir: string; p2pPort: number };
  const troubles: string[] = [];
  const asked: string[] = [];

  before(async () => {
    scratch = await tempFolder("live-page");
    options = { dataDir: scratch.file("source"), p2pPort: await freePort() };
    source = await startBroadcast("test-pattern", options);
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
    page = await browser.newPage({ viewport: { width: 1100, height: 1000 }, colorScheme: "dark" });
    page.setDefaultTimeout(75_000);
    page.on("pageerror", (error) => troubles.push(String(error)));
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => {
      if (message.type() === "error" && /Content.Security|Uncaught/i.test(message.text()))
        troubles.push(message.text());
    });
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await source?.stop();
    await scratch?.remove();
  });

  test(
    "a magnet of a stream plays at its edge, in parts, and is shown to be live",
    SLOW,
    inRealTime(async () => {
      await page.goto(`${engine.url}/`);
      await page.fill("#link", `sluice:?magnet=${encodeURIComponent(source.magnet)}`);
      await page.click("#play");
      await plays(page, 3);
      await page.locator("#live:not([hidden])").waitFor();
      await shows(page, "#live-state", /^Live$/);
      for (const id of ["#go-live", "#held", "#raw", "#problem"])
        assert.equal(await page.isHidden(id), true, id);
      assert.ok(asked.some((url) => /\.m3u8\?.*_HLS_msn=\d+&_HLS_part=\d+/.test(url)));
      assert.ok(asked.some((url) => /\/\d+\.p\d+\.ts$/.test(url)));
    }),
  );

  test(
    "it can be gone back in, and left for where it is live",
    SLOW,
    inRealTime(async () => {
      await page.locator("#live-window:not([hidden])").waitFor();
      await page.locator("#live-back").fill("-15");
      await shows(page, "#live-state", /^0:[1-5]\d behind$/);
      await plays(page, 1);
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/live-behind.png` });
      await page.click("#go-live");
      await shows(page, "#live-state", /^Live$/);
      await plays(page, 1);
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/live.png` });
    }),
  );

  test(
    "a source that is killed and started again plays on in the same page",
    SLOW,
    inRealTime(async () => {
      process.kill(-source.pid, "SIGKILL");
      await source.stop();
      const frames = await shownFrames(page);
      // Whoever looks at a picture that stands still is told why.
      await shows(page, "#waiting:not([hidden])", /No peer is connected/);
      await shows(page, "#status", /^Waiting for data$/);
      source = await startBroadcast("test-pattern", options);
      await page.waitForFunction(
        (before) =>
          (document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0) > before,
        frames + 250,
      );
      assert.equal(await page.isHidden("#problem"), true);
    }),
  );

  test("nothing is wider than a phone", SLOW, async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360));
  });

  test("nothing broke: no error of a script, no breach of the content security policy", () => {
    assert.deepEqual(troubles, []);
  });
});

/** Waits until an element's text is as `pattern` says. */
async function shows(page: Page, selector: string, pattern: RegExp): Promise<void> {
  await page.locator(selector).filter({ hasText: pattern }).waitFor();
}

function shownFrames(page: Page): Promise<number> {
  return page.evaluate(
    () => document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0,
  );
}

/** Waits until so many more seconds of pictures have been shown. */
async function plays(page: Page, seconds: number): Promise<void> {
  try {
    await page.waitForFunction(
      (least) => {
        const video = document.querySelector("video");
        return (
          video !== null && video.getVideoPlaybackQuality().totalVideoFrames >= 25 * least && !video.paused
        );
      },
      seconds,
      { timeout: 60_000 },
    );
  } catch (error) {
    const shown = await page.locator("main").textContent();
    throw new Error(`${seconds} s were not shown; the page said:\n${shown}`, { cause: error });
  }
}
