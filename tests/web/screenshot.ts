/**
 * Writes the screenshot of the README: the start page while it plays the built-in test pattern.
 * Usage: bun tests/web/screenshot.ts [FILE]. Needs Chromium.
 */
import { fileURLToPath } from "node:url";
import { chromium, type Page } from "playwright-core";
import { startEngine } from "../parts/engine.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { LAUNCH } from "./chromium-launch.ts";

const file = process.argv[2] ?? fileURLToPath(new URL("../../docs/images/start-page.png", import.meta.url));

const source = await startBroadcast("test-pattern", { name: "test-pattern" });
const engine = await startEngine();
const browser = await chromium.launch(LAUNCH);
try {
  const page = await browser.newPage({ viewport: { width: 980, height: 962 }, colorScheme: "dark" });
  page.setDefaultTimeout(60_000);
  await page.goto(`${engine.url}/`);
  await page.fill("#link", `sluice:?magnet=${encodeURIComponent(`${source.magnet}&dn=Test%20pattern`)}`);
  await page.click("#play");
  await playsFor(page, 8);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: file });
  console.log(file);
} finally {
  await browser.close();
  await engine.stop();
  await source.stop();
}

/** Resolves when the page has shown `seconds` of video. */
async function playsFor(page: Page, seconds: number): Promise<void> {
  await page.waitForFunction(
    (frames) => (document.querySelector("video")?.getVideoPlaybackQuality().totalVideoFrames ?? 0) >= frames,
    25 * seconds,
  );
}
