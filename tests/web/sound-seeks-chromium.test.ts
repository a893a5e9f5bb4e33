import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { chromium, type Page } from "playwright-core";
import { frameHashes } from "../e2e/judges.ts";
import { chirp, JUDGED_RATE, match, soundOf } from "../e2e/sound-judge.ts";
import { startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { scratchFile } from "../remux/make-media.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";
import { appended, recordAppends } from "./sound-recorder.ts";

const { test } = await testsThatNeed("chromium", "ffmpeg");

const SEEKS = 20;
/**
 * Each seek goes back, to where the sound has not been loaded. All sound after the last position must fit into Chromium's buffer (12 MB),
 * because otherwise the buffer loses its first seconds, also those that the test still examines.
 */
const DISTANCE_SECONDS = 16;
const FIRST_SECONDS = 360;
const SECONDS = FIRST_SECONDS + SEEKS * DISTANCE_SECONDS;
/** The picture is compared after the start and after one seek of so many. */
const PICTURE_EVERY = 5;
const PICTURES_PER_SECOND = 5;

test(
  `${SEEKS} seeks in a film with AC-3: after each, the sound equals the source within 20 ms of the picture, and plays without a gap`,
  { timeout: 600_000 },
  inRealTime(async () => {
    const scratch = await tempFolder("sound-seeks");
    const ended: (() => unknown)[] = [() => scratch.remove()];
    try {
      await seeks(scratch, (end) => ended.unshift(end));
    } finally {
      for (const end of ended) await end();
    }
  }),
);

async function seeks(scratch: TempFolder, after: (end: () => unknown) => void): Promise<void> {
  await mkdir(scratch.file("films"));
  const film = scratch.file("films/film.mkv");
  const picture = `testsrc2=size=96x64:rate=${PICTURES_PER_SECOND}:duration=${SECONDS}`;
  const encoded = "-ac 2 -c:v libx264 -preset ultrafast -g 10 -bf 2 -pix_fmt yuv420p -c:a ac3 -b:a 192k";
  const sound = scratch.file("sound.wav");
  await run("ffmpeg", ["-v", "error", ...chirp(SECONDS), sound]);
  const inputs = ["-f", "lavfi", "-i", picture, "-i", sound];
  await run("ffmpeg", ["-v", "error", ...inputs, ...encoded.split(" "), film]);
  const { samples: source } = await soundOf(sound);
  const hashes = await frameHashes(film);
  const torrent = await torrentOf(film, 64 * 1024, scratch.file("film.torrent"));
  const seeder = await startSeeder(torrent, scratch.file("films"));
  after(() => seeder.stop());
  const engine = await startEngine();
  after(() => engine.stop());
  const browser = await chromium.launch(LAUNCH);
  after(() => browser.close());
  const page = await openPage(browser, { timeoutMs: 120_000 });
  await page.addInitScript(recordAppends);
  await page.goto(`${engine.url}/`);
  await page.fill("#link", `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`);
  await page.click("#play");
  await appended(page, "audio");
  // The film begins at this time in the player.
  const firstPicture = await secondsOf((await appended(page, "video")).bytes, "v");
  for (let seek = 0; seek <= SEEKS; seek++) {
    const at = seek === 0 ? 0 : FIRST_SECONDS + (SEEKS - seek) * DISTANCE_SECONDS + 3;
    if (seek > 0) await seekTo(page, at);
    const heard = await appended(page, "audio", at + firstPicture);
    const skip = JUDGED_RATE / 10;
    const part = heard.samples.subarray(skip, skip + 1.2 * JUDGED_RATE);
    const begin = (await secondsOf(heard.bytes, "a")) - firstPicture;
    const { correlation, offsetSeconds } = match(source, part, Math.round(begin * JUDGED_RATE) + skip, 0.03);
    assert.ok(correlation > 0.98, `at ${at} s: ${correlation}`);
    assert.ok(Math.abs(offsetSeconds) <= 0.01, `at ${at} s: ${1000 * offsetSeconds} ms`);
    if (seek % PICTURE_EVERY === 0) {
      // The player may have had it before the seek.
      const { bytes } = await appended(page, "video", at + firstPicture);
      const shown = hashes.indexOf((await frameHashes(await scratchFile(bytes, "mp4")))[0]!);
      const late = (await secondsOf(bytes, "v")) - firstPicture - shown / PICTURES_PER_SECOND;
      assert.ok(shown >= 0 && Math.abs(late) < 0.002, `at ${at} s: picture ${shown} is ${late} s late`);
    }
    // One range of the buffer contains the position and what follows it.
    await page.waitForFunction((from) => {
      const { buffered } = document.querySelector("video")!;
      const ranges = Array.from({ length: buffered.length }, (_, i) => [buffered.start(i), buffered.end(i)]);
      return ranges.some(([start, end]) => start! <= from + 0.3 && end! >= from + 5);
    }, at);
  }
}

async function seekTo(page: Page, seconds: number): Promise<void> {
  await page.evaluate((to) => {
    document.querySelector("video")!.currentTime = to;
  }, seconds);
}

/** The presentation time of the first frame. */
async function secondsOf(bytes: Uint8Array, kind: "a" | "v"): Promise<number> {
  const probe = `-select_streams ${kind}:0 -read_intervals %+#1 -show_entries frame=pts_time -of csv=p=0`;
  const path = await scratchFile(bytes, "mp4");
  return Number.parseFloat(await run("ffprobe", ["-v", "error", ...probe.split(" "), path]));
}
