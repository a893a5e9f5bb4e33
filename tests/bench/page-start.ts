import { chromium } from "playwright-core";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { LAUNCH } from "../web/chromium-launch.ts";

/**
 * `bun tests/bench/page-start.ts [8] [film.ts]`: opens the page of a live stream (the test pattern, or an MPEG-TS file) that many times, one after the other, and prints the time from the
 * navigation to the first picture, and what the page had loaded by then.
 */
const count = Number(process.argv[2] ?? 8);
const film = process.argv[3];
const source = await startBroadcast(film === undefined ? "test-pattern" : { place: film }, {
  flags: ["--viewer-sharing", "on", ...(film === undefined ? [] : ["--loop"])],
});
const browser = await chromium.launch(LAUNCH);
try {
  const starts: number[] = [];
  for (let i = 0; i < count; i++) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${source.url}/watch/${source.infohash}`);
    const startMs = await page.evaluate(async () => {
      const facts = (globalThis as unknown as { sluiceViewer: { startMs?: number } }).sluiceViewer;
      while (facts.startMs === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
      return facts.startMs;
    });
    const loaded = await page.evaluate(() =>
      performance
        .getEntriesByType("resource")
        .map(
          ({ name, startTime, duration }) =>
            `${name.split("/").slice(-2).join("/")} ${Math.round(startTime)}+${Math.round(duration)}`,
        ),
    );
    starts.push(Math.round(startMs));
    if (i === count - 1) console.log(loaded.join("\n"));
    await context.close();
  }
  starts.sort((a, b) => a - b);
  console.log("start, ms:", starts.join(" "), "median", starts[starts.length >> 1]);
} finally {
  await browser.close();
  await source.stop();
}
