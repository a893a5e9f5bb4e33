import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { concatBytes } from "../../src/base/bytes.ts";
import { parseH264Sps } from "../../src/media/h264.ts";
import { FlatEncoder } from "../../src/media/h264-encode.ts";
import { type FlatFormat, flatPicture } from "../../src/media/h264-encode-picture.ts";
import { annexBNals } from "../../src/media/nal.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { scratchFile } from "../remux/make-media.ts";
import { seededRandom } from "../seeded-random.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const run = promisify(execFile);
const WITH = { timeout: 60_000 };
const FORMAT: FlatFormat = { columns: 5, rows: 4, width: 80, height: 64, framesPerSecond: 25 };

ffmpegTest(
  "FlatEncoder: ffmpeg decodes any picture of squares, whatever level codes it needs",
  WITH,
  async () => {
    const random = seededRandom(11);
    const encoder = new FlatEncoder(FORMAT);
    const pictures = Array.from({ length: 60 }, (_, i) => {
      const picture = flatPicture(FORMAT);
      // From smooth pictures to the hardest case: every square black or white.
      const spread = i % 3 === 0 ? 255 : i % 3 === 1 ? 12 : 80;
      for (const plane of [picture.luma, picture.cb, picture.cr])
        for (let at = 0; at < plane.length; at++)
          plane[at] = i % 6 === 3 ? 255 * Math.round(random()) : 128 + Math.round((random() - 0.5) * spread);
      return picture;
    });
    const stream = concatBytes(pictures.map((picture, i) => encoder.encode(picture, i % 20 === 0)));
    const path = await scratchFile(stream, "h264");
    const { stdout, stderr } = await run(
      "ffmpeg",
      ["-v", "error", "-i", path, "-pix_fmt", "yuv420p", "-fps_mode", "passthrough", "-f", "rawvideo", "-"],
      { encoding: "buffer", maxBuffer: 1 << 26 },
    );
    assert.equal(stderr.toString(), "");
    assert.equal(stdout.length, 60 * 80 * 64 * 1.5);
    let worst = 0;
    for (const [i, picture] of pictures.entries()) {
      const at = i * 80 * 64 * 1.5;
      for (let y = 0; y < 64; y++)
        for (let x = 0; x < 80; x++)
          worst = Math.max(
            worst,
            Math.abs(stdout[at + y * 80 + x]! - picture.luma[(y >> 2) * 20 + (x >> 2)]!),
          );
      for (let y = 0; y < 32; y++)
        for (let x = 0; x < 40; x++)
          worst = Math.max(
            worst,
            Math.abs(stdout[at + 5120 + y * 40 + x]! - picture.cb[(y >> 2) * 10 + (x >> 2)]!),
          );
    }
    assert.ok(worst <= 3, `off by ${worst}`);
  },
);

test("FlatEncoder: an unchanged picture takes a few bytes, and the parameter set describes the format", () => {
  const encoder = new FlatEncoder({ ...FORMAT, height: 60 });
  const picture = flatPicture(FORMAT);
  const key = encoder.encode(picture, true);
  assert.ok(encoder.encode(picture, false).length <= 12);
  const [sps] = annexBNals(key);
  const facts = parseH264Sps(key.subarray(sps!.start, sps!.end));
  assert.deepEqual(facts, {
    width: 80,
    height: 60,
    codecString: "avc1.42c01e",
  });
});
