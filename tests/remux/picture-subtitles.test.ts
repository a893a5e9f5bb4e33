import assert from "node:assert/strict";
import { openMedia } from "../../src/remux/open-media.ts";
import { pgsClear, pgsPicture, supOf } from "../media/encode-pgs.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { CountedFile } from "./file-access.ts";
import { scratchFile } from "./make-media.ts";

const { test } = await testsThatNeed("ffmpeg");

const WHITE = [[1, 235, 128, 128, 255]] as const;
/** Times of pictures, each shown for two seconds. */
const TIMES = [1, 4.5, 11, 12.5 + 8];

function pictureAt(index: number): Uint8Array {
  const pixels = Array<number>(64 * 16).fill(1);
  return pgsPicture({ width: 64, height: 16, x: 100 * (index + 1), y: 900, pixels, palette: WHITE });
}

/** A film of 25 s whose subtitles ffmpeg has copied or encoded. */
async function film(codec: string): Promise<CountedFile> {
  const sets = TIMES.flatMap((seconds, index) => [
    [seconds, pictureAt(index)] as const,
    [seconds + 2, pgsClear()] as const,
  ]);
  const sup = await scratchFile(supOf(sets), "sup");
  const path = await scratchFile(new Uint8Array(0), "mkv");
  const video = ["-f", "lavfi", "-i", "color=black:size=192x108:rate=2:duration=25"];
  const codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "4", "-c:s", codec];
  await run("ffmpeg", [
    "-v",
    "error",
    "-y",
    "-copyts",
    ...video,
    "-fix_sub_duration",
    "-i",
    sup,
    "-map",
    "0",
    "-map",
    "1",
    ...codecs,
    path,
  ]);
  return CountedFile.open(path);
}

for (const [codec, name] of [
  ["copy", "pgs"],
  ["dvdsub", "vobsub"],
] as const) {
  test(`pictures of ${name} in Matroska have the times and places of those that ffmpeg was given`, {
    timeout: 60_000,
  }, async () => {
    const media = await openMedia(await film(codec));
    const track = media.tracks.findIndex(({ kind }) => kind === "subtitle");
    assert.deepEqual([media.tracks[track]?.codec, media.tracks[track]?.isPicture], [name, true]);
    const states = [];
    for (let from = 0; from < 25; from += 5)
      states.push(...(await media.pictures!(track, { from, to: from + 5 })));
    const shown = states.filter(({ parts }) => parts.length > 0);
    const hidden = states.filter(({ parts }) => parts.length === 0);
    assert.deepEqual([shown.length, hidden.length], [TIMES.length, TIMES.length]);
    for (const [index, seconds] of TIMES.entries()) {
      assert.ok(Math.abs(shown[index]!.seconds - seconds) < 0.1, `shown at ${shown[index]!.seconds} s`);
      assert.ok(
        Math.abs(hidden[index]!.seconds - seconds - 2) < 0.1,
        `hidden at ${hidden[index]!.seconds} s`,
      );
      const [part] = shown[index]!.parts;
      assert.deepEqual([shown[index]!.width, part!.x, part!.y], [1920, 100 * (index + 1), 900]);
      assert.ok(
        Math.abs(part!.width - 64) <= 1 && Math.abs(part!.height - 16) <= 1,
        `${part!.width} × ${part!.height}`,
      );
    }
    await assert.rejects(media.pictures!(0, { from: 0, to: 1 }), /not a subtitle track of pictures/);
  });
}
