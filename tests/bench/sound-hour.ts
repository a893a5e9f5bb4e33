// `bun tests/bench/sound-hour.ts [--minutes 60] [--rate 1]`: plays a film with AC-3 in Chromium for an hour and prints how far sound and
// picture are apart at the start, every five minutes and at the end, and the gaps and silences in the sound that the player got.
import { appendFile, mkdir } from "node:fs/promises";
import { parseArgs } from "node:util";
import { chromium, type Page } from "playwright-core";
import { frameHashes } from "../e2e/judges.ts";
import { chirp, JUDGED_RATE, match, soundOf } from "../e2e/sound-judge.ts";
import { startEngine } from "../parts/engine.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { run } from "../parts/process.ts";
import { tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { LAUNCH } from "../web/chromium-launch.ts";
import { type Recorder, recordAppends } from "../web/sound-recorder.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "60" }, rate: { type: "string", default: "1" } },
});
const inits = new Map<string, Uint8Array>();
const seconds = 60 * Number(values.minutes);
const rate = Number(values.rate);
/** The sound repeats after this time. */
const LOOP_SECONDS = 57.6;
const POLL_MS = 10_000;
const JUDGED_EVERY_SECONDS = 300;

const scratch = await tempFolder("sound-hour");
await mkdir(scratch.file("films"));
const loop = scratch.file("loop.wav");
const film = scratch.file("films/film.mkv");
await run("ffmpeg", ["-v", "error", ...chirp(LOOP_SECONDS), loop]);
const picture = ["-f", "lavfi", "-i", `testsrc2=size=160x90:rate=25:duration=${seconds}`];
const encoded = "-ac 2 -c:v libx264 -preset ultrafast -g 50 -bf 2 -pix_fmt yuv420p -c:a ac3 -b:a 192k";
const looped = ["-stream_loop", "-1", "-i", loop, "-t", String(seconds)];
await run("ffmpeg", ["-v", "error", ...picture, ...looped, ...encoded.split(" "), film]);
// Twice, because a part can begin before the end of the loop and end after it.
const once = (await soundOf(loop)).samples;
const source = Float32Array.from([...once, ...once]);
const hashes = await frameHashes(film);
const torrent = await torrentOf(film, 256 * 1024, scratch.file("film.torrent"));
const seeder = await startSeeder(torrent, scratch.file("films"));
const engine = await startEngine({ env: { SLUICE_CACHE_LIMIT: "0" } });
const browser = await chromium.launch(LAUNCH);
try {
  const page = await browser.newPage();
  await page.addInitScript(recordAppends);
  await page.addInitScript(countStalls);
  await page.goto(`${engine.url}/`);
  await page.fill("#link", `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`);
  await page.click("#play");
  const [sound, pictures] = [scratch.file("sound.mp4"), scratch.file("pictures.mp4")];
  const judged: { readonly playedSeconds: number; readonly audio: string; readonly video: string }[] = [];
  let playedSeconds = 0;
  await page.waitForFunction(() => document.querySelector("video")!.currentTime > 0);
  await page.evaluate((speed) => {
    document.querySelector("video")!.playbackRate = speed;
  }, rate);
  const until = Date.now() + (1000 * seconds) / rate;
  while (Date.now() < until && playedSeconds < seconds - 15) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const taken = { audio: await take(page, "audio"), video: await take(page, "video") };
    for (const part of taken.audio) await appendFile(sound, part);
    if (taken.audio.length > 0 && taken.video.length > 0) {
      const pair = {
        playedSeconds,
        audio: `${sound}.${playedSeconds}.mp4`,
        video: `${pictures}.${playedSeconds}.mp4`,
      };
      for (const kind of ["audio", "video"] as const)
        for (const part of [inits.get(kind)!, taken[kind].at(-1)!]) await appendFile(pair[kind], part);
      // The last one is replaced until it is far enough from the one before it.
      const isFar =
        judged.length < 2 ||
        judged.at(-1)!.playedSeconds - judged.at(-2)!.playedSeconds >= JUDGED_EVERY_SECONDS;
      judged[isFar ? judged.length : judged.length - 1] = pair;
    }
    playedSeconds = await page.evaluate(() => document.querySelector("video")!.currentTime);
  }
  const stalls = await page.evaluate(() => (globalThis as never as { stalls: number }).stalls);
  console.log(`played ${playedSeconds.toFixed(1)} s; stalls after the start: ${stalls}`);
  for (const pair of judged) console.log(`after ${pair.playedSeconds.toFixed(0)} s: ${await offset(pair)}`);
  const times = (
    await run("ffprobe", ["-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", sound])
  )
    .split("\n")
    .map(Number.parseFloat)
    .filter((time) => !Number.isNaN(time));
  const gaps = times.filter((time, i) => i > 0 && Math.abs(time - times[i - 1]! - 1024 / 48000) > 0.0015);
  const silent = `silent at [${await silences(sound)}], in the film at [${await silences(film)}]`;
  const found = `${gaps.length} gaps, ${silent}`;
  console.log(`${times.length} AAC frames, ${(times.at(-1)! - times[0]!).toFixed(1)} s: ${found}`);
} finally {
  await browser.close();
  await engine.stop();
  await seeder.stop();
  await scratch.remove();
}

/** Returns the parts that were appended since the last call. */
async function take(page: Page, kind: "audio" | "video"): Promise<Uint8Array[]> {
  const taken = await page.evaluate((one) => {
    const { appendedParts } = globalThis as never as Recorder;
    const parts = appendedParts[one] ?? [];
    appendedParts[one] = [];
    // Base64 passes to the test faster than lists of numbers.
    const text = (bytes: Uint8Array) => (bytes as never as { toBase64(): string }).toBase64();
    return parts.map(({ init, part }) => [text(init), text(part)] as const);
  }, kind);
  const parts = taken.map(
    ([init, part]) => [Buffer.from(init, "base64"), Buffer.from(part, "base64")] as const,
  );
  const first = parts[0]?.[0];
  const isNew = first && !inits.has(kind);
  if (isNew) inits.set(kind, first);
  return [...(isNew && kind === "audio" ? [first] : []), ...parts.map(([, part]) => part)];
}

/** How much later the sound is heard than in the film, relative to the picture, in milliseconds. */
async function offset({ audio, video }: { audio: string; video: string }): Promise<string> {
  const heard = await soundOf(audio);
  const frame = hashes.indexOf((await frameHashes(video))[0]!);
  const probe = "-select_streams v:0 -read_intervals %+#1 -show_entries frame=pts_time -of csv=p=0".split(
    " ",
  );
  const shown = Number.parseFloat(await run("ffprobe", ["-v", "error", ...probe, video]));
  // The start of a part alone lacks the half frame before it.
  const skip = JUDGED_RATE / 10;
  const part = heard.samples.subarray(skip, skip + 1.5 * JUDGED_RATE);
  const filmSeconds = heard.seconds - (shown - frame / 25);
  const at = (((filmSeconds % LOOP_SECONDS) + LOOP_SECONDS) % LOOP_SECONDS) * JUDGED_RATE + skip;
  const { correlation, offsetSeconds } = match(source, part, Math.round(at));
  return `sound minus picture ${(-1000 * offsetSeconds).toFixed(1)} ms, correlation ${correlation.toFixed(3)}, of ${filmSeconds.toFixed(1)} s in the film`;
}

async function silences(path: string): Promise<string> {
  const detect = ["-i", path, "-map", "0:a:0", "-af", "silencedetect=noise=-45dB:d=0.005", "-f", "null", "-"];
  const printed = await run("ffmpeg", ["-nostdin", "-v", "info", ...detect]);
  return [...printed.matchAll(/silence_start: (\S+)/g)].map(([, at]) => `${at} s`).join(", ");
}

/** Runs in the page: counts how often the player waits for data after it has begun. */
function countStalls(): void {
  const counter = globalThis as never as { stalls: number };
  counter.stalls = 0;
  let hasBegun = false;
  document.addEventListener(
    "playing",
    () => {
      hasBegun = true;
    },
    true,
  );
  document.addEventListener(
    "waiting",
    () => {
      if (hasBegun) counter.stalls++;
    },
    true,
  );
}
