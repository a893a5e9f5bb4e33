import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { PictureState } from "../../src/media/picture-subtitles.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { pgsClear, pgsPicture, supOf } from "../media/encode-pgs.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { scratchFile } from "./make-media.ts";
import { memoryAccess } from "./media-checks.ts";

const { test } = await testsThatNeed("ffmpeg");
const exec = promisify(execFile);

/** The screen of the subtitles. */
const [WIDTH, HEIGHT, SECONDS] = [1920, 1080, 25];
/** Luma, red and blue difference, opacity: white, red, half transparent blue, black. */
const COLOURS = [
  [1, 235, 128, 128, 255],
  [2, 81, 240, 90, 255],
  [3, 41, 110, 240, 128],
  [4, 16, 128, 128, 255],
] as const;
const TIMES = [1, 4.5, 11, 20.5];

/** A picture with runs of every length, and many colours. */
function pictureAt(index: number): Uint8Array {
  const width = 200 + 37 * index;
  const height = 40;
  const pixels = Array.from({ length: width * height }, (_, i) => {
    const [x, y] = [i % width, Math.floor(i / width)];
    if (y < 4) return 1 + (x % 4);
    if (y < 20) return x < 10 * y ? 0 : 1 + (Math.floor(x / (1 + y)) % 4);
    return y % 3 === 0 ? 0 : 1 + ((x * y) % 4);
  });
  return pgsPicture({ width, height, x: 60 * (index + 1), y: 400, pixels, palette: COLOURS });
}

/** A transport stream with subtitles that ffmpeg has copied or encoded. */
async function film(options: readonly string[]): Promise<{ path: string; bytes: Uint8Array }> {
  const sets = TIMES.flatMap((seconds, index) => [
    [seconds, pictureAt(index)] as const,
    [seconds + 2, pgsClear()] as const,
  ]);
  const sup = await scratchFile(supOf(sets), "sup");
  const path = await scratchFile(new Uint8Array(0), "ts");
  const video = ["-f", "lavfi", "-i", `color=gray:size=${WIDTH}x${HEIGHT}:rate=2:duration=${SECONDS}`];
  const codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "4", ...options];
  const subtitles = [
    "-fix_sub_duration",
    "-i",
    sup,
    "-map",
    "0",
    "-map",
    "1",
    "-metadata:s:s:0",
    "language=ger",
  ];
  await run("ffmpeg", ["-v", "error", "-y", "-copyts", ...video, ...subtitles, ...codecs, path]);
  return { path, bytes: new Uint8Array(await readFile(path)) };
}

/** What ffmpeg shows at a time of the file, over grey, as red, green and blue. */
async function ffmpegAt(path: string, seconds: number): Promise<Uint8Array> {
  const filter = "[0:v]format=gbrp,drawbox=color=black:t=fill[b];[b][0:s]overlay=format=gbrp[o]";
  const { stdout } = await exec(
    "ffmpeg",
    [
      ...["-v", "error", "-i", path, "-filter_complex", filter, "-map", "[o]"],
      ...["-ss", String(seconds), "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
    ],
    { encoding: "buffer", maxBuffer: 1 << 26 },
  );
  return new Uint8Array(stdout);
}

/** What a state shows over black. */
function drawn(state: PictureState | undefined): Uint8Array {
  const image = new Uint8Array(3 * WIDTH * HEIGHT);
  for (const { x, y, width, palette, runs } of state?.parts ?? [])
    for (let at = 0, pixel = 0; at < runs.length; at += 2)
      for (let i = 0; i < runs[at]!; i++, pixel++) {
        const to = 3 * ((y + Math.floor(pixel / width)) * WIDTH + x + (pixel % width));
        const colour = 4 * runs[at + 1]!;
        for (let c = 0; c < 3; c++)
          image[to + c] = Math.round((palette[colour + c]! * palette[colour + 3]!) / 255);
      }
  return image;
}

for (const [options, name] of [
  [["-c:s", "dvbsub"], "dvb_subtitle"],
  // ffmpeg writes PGS into streams of Blu-ray discs only.
  [["-c:s", "copy", "-mpegts_m2ts_mode", "1"], "pgs"],
] as const) {
  test(`${name} of a transport stream is what ffmpeg decodes, at the same times`, {
    timeout: 120_000,
  }, async () => {
    const { path, bytes } = await film(options);
    const media = await openMedia(memoryAccess(bytes));
    const index = media.tracks.findIndex(({ kind }) => kind === "subtitle");
    const track = media.tracks[index]!;
    assert.deepEqual(
      [track.codec, track.language, track.isPicture],
      [name, name === "pgs" ? "und" : "ger", true],
    );
    const states: PictureState[] = [];
    for (let from = 0; from < SECONDS; from += 5)
      states.push(...(await media.pictures!(index, { from, to: from + 5 })));
    const shown = states.filter(({ parts }) => parts.length > 0);
    assert.equal(shown.length, TIMES.length);
    const first = Number(
      await run("ffprobe", [
        ...["-v", "error", "-select_streams", "v:0", "-read_intervals", "%+#1"],
        ...["-show_entries", "packet=dts_time", "-of", "csv=p=0", path],
      ]).then((text) => Number.parseFloat(text)),
    );
    for (const [i, seconds] of TIMES.entries()) {
      // Times of a file begin with the decode time of its first picture.
      const late = shown[i]!.seconds + first - (await startOf(path)) - seconds;
      assert.ok(Math.abs(late) < 0.1, `picture ${i}: ${late} s late`);
      const next = states[states.indexOf(shown[i]!) + 1];
      assert.ok(next && next.parts.length === 0, "it is hidden");
      assert.ok(Math.abs(next.seconds - shown[i]!.seconds - 2) < 0.1, `hidden at ${next.seconds} s`);
      if (name === "pgs") continue;
      const [ours, theirs] = [drawn(shown[i]), await ffmpegAt(path, seconds + 1)];
      let [wrong, lit] = [0, 0];
      for (const [at, value] of ours.entries()) {
        if (value > 40) lit++;
        if (Math.abs(value - theirs[at]!) > 12) wrong++;
      }
      assert.ok(lit > 5000, `${lit} bytes are lit`);
      assert.ok(wrong < lit / 500, `picture ${i}: ${wrong} of ${lit} differ`);
    }
    await assert.rejects(media.pictures!(0, { from: 0, to: 1 }), /not a subtitle track of pictures/);
    media.close();
  });
}

/** The time of the first picture, which ffmpeg was given as 0. */
async function startOf(path: string): Promise<number> {
  const entries = ["-show_entries", "packet=pts_time", "-of", "csv=p=0", path];
  const text = await run("ffprobe", [
    "-v",
    "error",
    "-select_streams",
    "v:0",
    "-read_intervals",
    "%+#1",
    ...entries,
  ]);
  return Number.parseFloat(text);
}
