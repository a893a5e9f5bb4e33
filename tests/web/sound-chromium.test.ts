import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { frameHashes } from "../e2e/judges.ts";
import { chirp, JUDGED_RATE, match, soundOf } from "../e2e/sound-judge.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { inRealTime } from "../parts/real-time.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { scratchFile } from "../remux/make-media.ts";
import { LAUNCH, openPage } from "./chromium-launch.ts";
import { appended, type Recorder, recordAppends } from "./sound-recorder.ts";

const { after, before, describe, test } = await testsThatNeed("chromium", "ffmpeg");

const SLOW = { timeout: 200_000 };
const SECONDS = 150;
/** The audio tracks of each film, in their order. Chromium decodes none of them in HLS. */
const CODECS = ["ac3", "eac3", "dca", "mp2", "libmp3lame"];
const LANGUAGES = ["eng", "ger", "fre", "spa", "ita"];
/** Where each track is heard, in seconds: at the start, and after a seek that is not in the buffer. */
const POSITIONS = [0, 60, 30, 70, 45];

describe("sound that browsers do not play, in Chromium", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let engine: EngineProcess;
  let browser: Browser;
  let source: Float32Array;
  let hashes: string[];
  const film = (container: string) => scratch.file(`films/film.${container}`);

  before(async () => {
    scratch = await tempFolder("page-sound");
    await mkdir(scratch.file("films"), { recursive: true });
    const picture = ["-f", "lavfi", "-i", `testsrc2=size=160x90:rate=25:duration=${SECONDS}`];
    const original = scratch.file("original.mkv");
    await run("ffmpeg", [
      ...["-v", "error", ...picture, ...chirp(SECONDS), "-ac", "2", "-c:a", "pcm_s16le"],
      ..."-c:v libx264 -preset ultrafast -g 50 -bf 2 -pix_fmt yuv420p".split(" "),
      original,
    ]);
    const audio = CODECS.flatMap((codec, i) => [
      ...["-map", "0:a", `-c:a:${i}`, codec, "-strict", "-2"],
      ...(codec === "dca" ? [] : [`-b:a:${i}`, "192k"]),
      ...[`-metadata:s:a:${i}`, `language=${LANGUAGES[i]}`],
    ]);
    const films = ["mkv", "mp4", "ts"].flatMap((name) => [
      "-map",
      "0:v",
      ...audio,
      "-c:v",
      "copy",
      film(name),
    ]);
    await run("ffmpeg", ["-v", "error", "-i", original, ...films]);
    source = (await soundOf(original)).samples;
    hashes = await frameHashes(original);
    engine = await startEngine();
    browser = await chromium.launch(LAUNCH);
  }, SLOW);
  after(async () => {
    await browser?.close();
    await engine?.stop();
    await scratch?.remove();
  });

  /** Opens a link and hears each audio track. `seek`: at another position. */
  async function hearAll(link: string, seeks: boolean): Promise<void> {
    const page = await openPage(browser);
    const original: string[] = [];
    page.on("request", (request) => /\.a50\d\.ts$/.test(request.url()) && original.push(request.url()));
    await page.addInitScript(recordAppends);
    await page.goto(`${engine.url}/`);
    await page.fill("#link", link);
    await page.click("#play");
    await page.waitForFunction(
      (count) => document.querySelectorAll("#audio option").length === count,
      CODECS.length,
    );
    let zero: number | undefined;
    for (const [index, codec] of CODECS.entries()) {
      if (index > 0) await choose(page, index, seeks ? POSITIONS[index] : undefined);
      const decoded = await decodedAudioBytes(page);
      const heard = await appended(page, "audio");
      zero ??= await pictureZero(await appended(page, "video"));
      const { seconds } = await soundOf(await scratchFile(heard.bytes, "mp4"));
      // The start of a part alone lacks the half frame before it.
      const from = JUDGED_RATE / 10;
      const part = heard.samples.subarray(from, from + 1.5 * JUDGED_RATE);
      const position = Math.round((seconds - zero) * JUDGED_RATE) + from;
      const { correlation, offsetSeconds } = match(source, part, position);
      assert.ok(correlation > 0.98, `${codec}: ${correlation}`);
      assert.ok(Math.abs(offsetSeconds) <= 0.02, `${codec}: ${1000 * offsetSeconds} ms`);
      await page.waitForFunction(
        (count) =>
          (document.querySelector("video") as never as { webkitAudioDecodedByteCount: number })
            .webkitAudioDecodedByteCount > count,
        decoded,
      );
    }
    assert.deepEqual(original, []);
    await page.close();
  }

  /** The time in the player at which the source began, from the first picture of a part. */
  async function pictureZero({ bytes }: { bytes: Uint8Array }): Promise<number> {
    const path = await scratchFile(bytes, "mp4");
    const frame = hashes.indexOf((await frameHashes(path))[0]!);
    assert.ok(frame >= 0);
    const probe = "-select_streams v:0 -read_intervals %+#1 -show_entries frame=pts_time -of csv=p=0";
    const seconds = Number.parseFloat(await run("ffprobe", ["-v", "error", ...probe.split(" "), path]));
    return seconds - frame / 25;
  }

  for (const container of ["mp4", "mkv", "ts"])
    test(
      `five codecs in ${container.toUpperCase()}: the sound equals the source, within 20 ms of the picture, at the start and after seeks`,
      SLOW,
      inRealTime(async () => {
        const torrent = await torrentOf(film(container), 64 * 1024, scratch.file(`${container}.torrent`));
        const seeder = await startSeeder(torrent, scratch.file("films"));
        try {
          await hearAll(`magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`, true);
        } finally {
          await seeder.stop();
        }
      }),
    );

  test(
    "five codecs in a live stream: the sound equals the source, within 20 ms of the picture",
    SLOW,
    inRealTime(async () => {
      const broadcast = await startBroadcast({ place: film("ts") });
      try {
        await hearAll(`sluice:?magnet=${encodeURIComponent(broadcast.magnet)}`, false);
      } finally {
        await broadcast.stop();
      }
    }),
  );
});

/** Chooses an audio track, at another position if one is given, and forgets what was appended before. */
async function choose(page: Page, index: number, seconds: number | undefined): Promise<void> {
  const request = page.waitForRequest((one) => one.url().endsWith(`.a${index + 1}.ts`));
  await page.evaluate(
    ([chosen, to]) => {
      const menu = document.querySelector<HTMLSelectElement>("#audio")!;
      menu.selectedIndex = chosen!;
      menu.dispatchEvent(new Event("change"));
      (globalThis as never as Recorder).appendedParts = {};
      if (to !== undefined) document.querySelector("video")!.currentTime = to;
    },
    [index, seconds],
  );
  await request;
}

function decodedAudioBytes(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      (document.querySelector("video") as never as { webkitAudioDecodedByteCount: number })
        .webkitAudioDecodedByteCount,
  );
}
