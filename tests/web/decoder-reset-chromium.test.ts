import assert from "node:assert/strict";
import { type Browser, chromium, type Page } from "playwright-core";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

const SLOW = { timeout: 200_000 };

/** Runs in the page: damages the first picture of the `nth` part of the video, and notes where the player was reset after that. */
function damagePart(nth: number): void {
  let parts = 0;
  const videos = new WeakSet<SourceBuffer>();
  const { addSourceBuffer } = MediaSource.prototype;
  MediaSource.prototype.addSourceBuffer = function (type) {
    const buffer = addSourceBuffer.call(this, type);
    if (type.startsWith("video")) videos.add(buffer);
    return buffer;
  };
  const { appendBuffer } = SourceBuffer.prototype;
  SourceBuffer.prototype.appendBuffer = function (data) {
    const bytes = new Uint8Array(data as ArrayBuffer).slice();
    const at = videos.has(this) ? new TextDecoder("latin1").decode(bytes).indexOf("mdat") : -1;
    // The length of the first unit of the picture exceeds its size.
    if (at >= 0 && ++parts === nth) bytes.set([0x7f, 0xff, 0xff, 0xff], at + 4);
    appendBuffer.call(this, bytes);
  };
  let reached = 0;
  const note = ({ target }: Event) => {
    reached = (target as HTMLVideoElement).currentTime || reached;
  };
  document.addEventListener("timeupdate", note, true);
  const reset = () => {
    if (parts >= nth) Object.assign(globalThis, { resetAt: { reached } });
  };
  document.addEventListener("emptied", reset, true);
}

/** Plays a link. Resolves when the player was reset, and the video plays on. */
async function survives(page: Page, url: string, link: string, nth: number): Promise<void> {
  await page.addInitScript(damagePart, nth);
  await page.goto(`${url}/`);
  await page.fill("#link", link);
  await page.click("#play");
  await page.waitForFunction(() => {
    const { resetAt } = globalThis as { resetAt?: { reached: number } };
    const { currentTime, paused } = document.querySelector("video")!;
    return resetAt && !paused && currentTime > resetAt.reached + 5;
  });
  assert.equal(await page.isHidden("#problem"), true);
}

describe("a damaged picture in Chromium", { timeout: 400_000 }, () => {
  let engine: EngineProcess;
  let browser: Browser;
  before(async () => {
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
  });

  test(
    "a film plays on",
    SLOW,
    inRealTime(async () => {
      const scratch = await tempFolder("damaged-film");
      const film = scratch.file("film.ts");
      const inputs = "-f lavfi -i testsrc2=size=640x360:rate=25:duration=60 -f lavfi -i sine=duration=60";
      const codecs = "-c:v libx264 -preset ultrafast -g 50 -pix_fmt yuv420p -c:a aac";
      await run("ffmpeg", ["-v", "error", ...`${inputs} ${codecs}`.split(" "), film]);
      const torrent = await torrentOf(film, 64 * 1024, scratch.file("film.torrent"));
      const seeder = await startSeeder(torrent, scratch.path);
      try {
        const link = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
        await survives(await openPage(browser), engine.url, link, 2);
      } finally {
        await seeder.stop();
        await scratch.remove();
      }
    }),
  );

  test(
    "a live stream plays on",
    SLOW,
    inRealTime(async () => {
      const source = await startBroadcast("test-pattern");
      try {
        const link = `sluice:?magnet=${encodeURIComponent(source.magnet)}`;
        await survives(await openPage(browser), engine.url, link, 12);
      } finally {
        await source.stop();
      }
    }),
  );
});
