import assert from "node:assert/strict";
import { type Browser, chromium } from "playwright-core";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { inRealTime } from "../parts/real-time.ts";
import { LAUNCH, openPage, VIEWER } from "./chromium-launch.ts";
import { Firefox } from "./firefox.ts";
import { factsOf, plays, until } from "./viewer-parts.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "firefox");

/** A busy machine plays late. */
const SLOW = { timeout: 240_000 };
/** The rate of the test pattern. */
const BYTES_PER_SECOND = 30_000;
/** Two seconds of the stream. */
const EXCHANGED_BYTES = 2 * BYTES_PER_SECOND;

describe("a viewer in Firefox and one in Chromium", { timeout: 600_000 }, () => {
  let source: BroadcastProcess;
  let browser: Browser;
  let firefox: Firefox;

  before(async () => {
    // Upload for less than two copies: each page has to get a part of the stream from the other.
    const flags = ["--viewer-sharing", "on", "--upload-limit", `${1.5 * BYTES_PER_SECOND}`];
    source = await startBroadcast("test-pattern", { flags });
    browser = await chromium.launch(LAUNCH);
    firefox = await Firefox.start(640, 480);
  }, SLOW);
  after(async () => {
    await firefox?.close();
    await browser?.close();
    await source?.stop();
  });

  test(
    "exchange chunks in both directions",
    SLOW,
    inRealTime(async ({ after: clean }) => {
      const url = `${source.url}/watch/${source.infohash}`;
      const page = await openPage(browser, VIEWER);
      clean(() => page.close());
      await page.goto(url);
      await plays(page, 1);
      await firefox.open(url);
      await firefox.until(`document.querySelector("video").getVideoPlaybackQuality().totalVideoFrames > 25`);
      await until(page, ({ figures }) => figures!.children > 0 && figures!.fromPages > EXCHANGED_BYTES);
      await firefox.until(
        `sluiceViewer.figures.children > 0 && sluiceViewer.figures.fromPages > ${EXCHANGED_BYTES}`,
      );
      assert.equal((await factsOf(page)).isFallback, false);
      assert.equal(await firefox.evaluate("sluiceViewer.isFallback"), false);
    }),
  );
});
