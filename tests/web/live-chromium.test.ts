import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, freePort, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium");
const { test: ffmpegTest } = await testsThatNeed("chromium", "ffmpeg");

/** A busy machine plays late. */
const SLOW = { timeout: 90_000 };

/** If set, the folder for screenshots. */
const SHOTS = process.env.PAGE_SCREENSHOTS;

describe("a live stream on the start page in Chromium", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let source: BroadcastProcess;
  let engine: EngineProcess;
  let browser: Browser;
  let page: Page;
  let options: { dataDir: string; p2pPort: number };
  const scriptErrors: string[] = [];
  const requests: string[] = [];

  before(async () => {
    scratch = await tempFolder("live-page");
    options = { dataDir: scratch.file("source"), p2pPort: await freePort() };
    source = await startBroadcast("test-pattern", options);
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
    page = await openPage(browser, {
      viewport: { width: 1100, height: 1000 },
      colorScheme: "dark",
      faults: scriptErrors,
    });
    page.on("request", (request) => requests.push(request.url()));
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await source?.stop();
    await scratch?.remove();
  });

  test(
    "a magnet link of a stream plays at the live edge, in parts, and is marked as live",
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
      assert.ok(requests.some((url) => /\.m3u8\?.*_HLS_msn=\d+&_HLS_part=\d+/.test(url)));
      assert.ok(requests.some((url) => /\/\d+\.p\d+\.ts$/.test(url)));
      // The state of the session comes over a connection that stays open.
      const asked = () => requests.filter((url) => /\/ace\/stat\/|\/api\/events/.test(url));
      const opened = asked();
      assert.match(opened.at(-1) ?? "", /\/stat\/.*\/events$|\/events\?session=/);
      await plays(page, 6);
      assert.deepEqual(asked(), opened);
    }),
  );

  test(
    "the viewer can seek back, and return to the live edge",
    SLOW,
    inRealTime(async () => {
      await page.locator("#live-window:not([hidden])").waitFor();
      await page.locator("#live-back").fill("-15");
      await shows(page, "#live-state", /^0:[1-5]\d behind live$/);
      await plays(page, 1);
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/live-behind.png` });
      await page.click("#go-live");
      await shows(page, "#live-state", /^Live$/);
      await plays(page, 1);
      if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/live.png` });
    }),
  );

  test(
    "playback continues in the same page after the source is killed and restarted",
    SLOW,
    inRealTime(async () => {
      process.kill(-source.pid, "SIGKILL");
      await source.stop();
      const frames = await shownFrames(page);
      // The page shows why the picture stands still.
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

  test("the page fits the width of a phone", SLOW, async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360));
  });

  test("no script failed, and nothing violated the content security policy", () => {
    assert.deepEqual(scriptErrors, []);
  });
});

describe("a live stream in two qualities on the start page in Chromium", { timeout: 300_000 }, () => {
  ffmpegTest(
    "the viewer chooses a quality, and the manifest describes what ffprobe finds",
    { timeout: 280_000 },
    inRealTime(async () => {
      const source = await startBroadcast("test-pattern", { flags: ["--renditions", "180p:300k"] });
      const engine = await startEngine();
      const browser = await chromium.launch(LAUNCH);
      try {
        const page = await openPage(browser, { viewport: { width: 1100, height: 1000 } });
        await page.goto(`${engine.url}/`);
        await page.fill("#link", `sluice:?magnet=${encodeURIComponent(source.magnet)}`);
        await page.click("#play");
        await plays(page, 3);
        const lines = (height: number) =>
          page.waitForFunction((wanted) => document.querySelector("video")?.videoHeight === wanted, height);
        await lines(360);
        assert.deepEqual(await page.locator("#quality option").allTextContents(), [
          "Automatic (360p)",
          "360p",
          "180p",
        ]);
        await page.selectOption("#quality", "180p");
        await lines(180);
        await plays(page, 3);
        if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/live-qualities.png` });
        await page.selectOption("#quality", "360p");
        await lines(360);
        await plays(page, 1);
      } finally {
        await browser.close();
      }
      try {
        const master = await (await fetch(watchUrl(engine, source.magnet, "manifest.m3u8"))).text();
        const variants = [...master.matchAll(/CODECS="(.*)",RESOLUTION=(\d+)x(\d+)\n(.*)/g)];
        assert.equal(variants.length, 2, master);
        for (const [, codecs, width, height, url] of variants) {
          const found = probe(url!).streams.find(({ codec_type }) => codec_type === "video")!;
          assert.deepEqual([String(found.width), String(found.height)], [width, height]);
          const level = found.level.toString(16).padStart(2, "0");
          assert.match(codecs!, new RegExp(`^avc1\\.(42c0|6400)${level},mp4a\\.40\\.2$`, "i"));
        }
        // The key frames of both are at the same times.
        const names = await Promise.all(
          variants.map(async ([, , , , url]) => (await (await fetch(url!)).text()).match(/http\S*\.ts$/gm)!),
        );
        const numbers = names.map((urls) => urls.map((url) => /\/(\d+)\.[^/]*$/.exec(url)![1]));
        const common = numbers[0]!.filter((number) => numbers[1]!.includes(number)).at(-1)!;
        const starts = names.map((urls) => {
          const url = urls.find((each) => each.includes(`/${common}.`))!;
          return probe(url).streams.find(({ codec_type }) => codec_type === "video")!.start_pts;
        });
        assert.ok(Math.abs(starts[0]! - starts[1]!) <= 90, `${starts} differ by more than 1 ms`);
      } finally {
        await engine.stop();
        await source.stop();
      }
    }),
  );
});

/** Waits until an element's text matches `pattern`. */
async function shows(page: Page, selector: string, pattern: RegExp): Promise<void> {
  await page.locator(selector).filter({ hasText: pattern }).waitFor();
}

function shownFrames(page: Page): Promise<number> {
  return page.evaluate(
    () => document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0,
  );
}

/** Waits until `seconds` of video frames have been shown. */
async function plays(page: Page, seconds: number): Promise<void> {
  try {
    await page.waitForFunction(
      (min) => {
        const video = document.querySelector("video");
        return (
          video !== null && video.getVideoPlaybackQuality().totalVideoFrames >= 25 * min && !video.paused
        );
      },
      seconds,
      { timeout: 60_000 },
    );
  } catch (error) {
    const shown = await page.locator("main").textContent();
    throw new Error(`the page did not show ${seconds} s of video; it shows:\n${shown}`, { cause: error });
  }
}

interface Probe {
  readonly streams: readonly {
    readonly codec_type: string;
    readonly width: number;
    readonly height: number;
    readonly level: number;
    readonly start_pts: number;
  }[];
}

/** What ffprobe finds. */
function probe(url: string): Probe {
  const args = ["-v", "error", "-show_streams", "-of", "json", url];
  return JSON.parse(spawnSync("ffprobe", args, { encoding: "utf8", timeout: 60_000 }).stdout) as Probe;
}
