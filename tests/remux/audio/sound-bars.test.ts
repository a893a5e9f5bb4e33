import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { concatBytes } from "../../../src/base/bytes.ts";
import { AudioTranscoder } from "../../../src/remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import type { Media } from "../../../src/remux/contract.ts";
import { openMedia } from "../../../src/remux/open-media.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { testsThatNeed } from "../../parts/needs.ts";
import { makeMedia, scratchFile } from "../make-media.ts";
import { fileAccess, memoryAccess } from "../media-checks.ts";
import { probePackets } from "../probe.ts";
import { tsSegment } from "../segments.ts";

const { test } = await testsThatNeed("ffmpeg");
const run = promisify(execFile);
const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const WITH = { timeout: 300_000 };
const CONVERSION = { all: true, mp3: true, ac3: true, isHls: false, channels: 2 } as const;
const RATE = 8000;
/** Length of the sound that a long film repeats: whole frames of each codec. */
const LOOP_SECONDS = 57.6;

/** A chirp with noise: a shift by a millisecond lowers the correlation. */
const CHIRP = `aevalsrc=0.3*sin(2*PI*(300+4*t)*t)+0.1*(random(0)-0.5):s=48000:d=${LOOP_SECONDS}`;
const PICTURE = "-c:v libx264 -preset ultrafast -g 6 -pix_fmt yuv420p".split(" ");

/** An hour of 64×64 video at one frame a second, whose sound repeats. */
async function longFilm(name: string, audio: string): Promise<{ loop: string; film: string }> {
  const loop = await makeMedia(`loop-${name}`, [
    ...["-f", "lavfi", "-i", `testsrc2=size=64x64:rate=1.25:duration=${LOOP_SECONDS}`],
    ...["-f", "lavfi", "-i", CHIRP, "-ac", "2", ...PICTURE, "-c:a", ...audio.split(" ")],
  ]);
  const film = await makeMedia(`hour-${name}`, ["-stream_loop", "62", "-i", loop, "-c", "copy"]);
  return { loop, film };
}

/** The sound of a file as mono, and the time of its first sample. */
async function soundOf(path: string): Promise<{ samples: Float32Array; seconds: number }> {
  const probe = "-select_streams a:0 -read_intervals %+#3 -show_entries frame=pts_time -of json".split(" ");
  const { frames } = JSON.parse((await run("ffprobe", ["-v", "error", ...probe, path])).stdout);
  const raw = ["-map", "0:a:0", "-ac", "1", "-ar", String(RATE), "-f", "f32le", "-"];
  const { stdout } = await run("ffmpeg", ["-v", "error", "-i", path, ...raw], {
    encoding: "buffer",
    maxBuffer: 1 << 28,
  });
  const whole = stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + (stdout.length & ~3));
  return { samples: new Float32Array(whole), seconds: Number(frames[0].pts_time) };
}

/** The best correlation of `part` with the repeated `loop` around position `at`, and its shift in samples. */
function bestMatch(
  loop: Float32Array,
  part: Float32Array,
  at: number,
): { similarity: number; shift: number } {
  const period = LOOP_SECONDS * RATE;
  const from = ((at % period) + period - 400) % period;
  const around = Float32Array.from({ length: part.length + 800 }, (_, i) => loop[(from + i) % period] ?? 0);
  let best = { similarity: -1, shift: 0 };
  for (let shift = -400; shift <= 400; shift++) {
    let [both, first, second] = [0, 0, 0];
    for (let i = 0; i < part.length; i += 3) {
      const source = around[400 + shift + i]!;
      both += source * part[i]!;
      first += source ** 2;
      second += part[i]! ** 2;
    }
    const similarity = both / Math.sqrt(first * second || 1);
    if (similarity > best.similarity) best = { similarity, shift };
  }
  return best;
}

for (const [name, audio] of [
  ["ac3.mkv", "ac3 -b:a 192k"],
  ["dts.mkv", "dca -strict -2"],
  ["ac3.ts", "ac3 -b:a 192k"],
] as const) {
  test(
    `conversion of ${name}: within 20 ms of the picture and without gaps after 20 seeks in an hour`,
    WITH,
    async () => {
      const { loop, film } = await longFilm(name, audio);
      const access = await fileAccess(film);
      const media = await openMedia(access, { audio: { conversion: CONVERSION } }, transcoder);
      try {
        const source = await soundOf(loop);
        const count = media.segments.length;
        // Times of the file are the times of segments minus those at which each begins.
        const base = (await startOf(media)) - (await startOfFile(film));
        for (let seek = 0; seek < 20; seek++) {
          // Numbers without order, from the first segment to the last minute.
          const index = Math.floor((((seek * 7) % 20) / 19) * (count - 2));
          const path = await scratchFile(await tsSegment(media, index), "ts");
          const { samples, seconds } = await soundOf(path);
          const skip = RATE >> 2;
          const at = Math.round((seconds - base - source.seconds) * RATE) + skip;
          const { similarity, shift } = bestMatch(
            source.samples,
            samples.subarray(skip, skip + 3 * RATE),
            at,
          );
          assert.ok(similarity > 0.98, `segment ${index}: ${similarity}`);
          assert.ok(Math.abs(shift) <= 0.02 * RATE, `segment ${index}: ${(1000 * shift) / RATE} ms`);
        }
        // The end of the repeated sound can be a gap in the film itself.
        const deep = media.segments.findIndex(
          ({ startSeconds }, index) => index > count * 0.9 && (startSeconds - 2) % LOOP_SECONDS < 14,
        );
        const parts = [];
        for (let index = deep; index < deep + 4; index++) parts.push(await tsSegment(media, index));
        const path = await scratchFile(concatBytes(parts), "ts");
        const silence = [
          "-i",
          path,
          "-map",
          "0:a:0",
          "-af",
          "silencedetect=noise=-45dB:d=0.005",
          "-f",
          "null",
          "-",
        ];
        const { stderr } = await run("ffmpeg", ["-nostdin", "-v", "info", ...silence]);
        assert.doesNotMatch(stderr, /silence_start/);
        assert.deepEqual(await gapsOf(path), []);
      } finally {
        media.close();
        await access.close();
      }
    },
  );
}

/** The time of the first picture of the first segment. */
async function startOf(media: Media): Promise<number> {
  return startOfFile(await scratchFile(await tsSegment(media, 0), "ts"));
}

async function startOfFile(path: string): Promise<number> {
  const probe = "-select_streams v:0 -read_intervals %+#2 -show_entries frame=pts_time -of json".split(" ");
  const { frames } = JSON.parse((await run("ffprobe", ["-v", "error", ...probe, path])).stdout);
  return Number(frames[0].pts_time);
}

/** Times at which the AAC of a file does not continue. */
async function gapsOf(path: string): Promise<number[]> {
  const times = (await probePackets(path)).filter(({ stream }) => stream === 1).map(({ pts }) => pts);
  assert.ok(times.length > 50);
  return times.filter((time, i) => i > 0 && Math.abs(time - times[i - 1]! - 1024 / 48000) > 0.0015);
}

for (const [name, audio] of [
  ["damage-ac3.ts", "ac3"],
  ["damage-dts.ts", "dca -strict -2"],
  ["damage-mp2.ts", "mp2"],
  ["damage-ac3.mkv", "ac3"],
  ["damage-dts.mkv", "dca -strict -2"],
  ["damage-mp2.mkv", "mp2"],
] as const) {
  test(
    `conversion of ${name}: flipped bits in every tenth audio frame stop neither picture nor sound`,
    WITH,
    async () => {
      const path = await makeMedia(name, [
        ...["-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:duration=12"],
        ...["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=12"],
        ...["-ac", "2", ...PICTURE, "-c:a", ...audio.split(" ")],
      ]);
      const access = await fileAccess(path);
      const bytes = await access.read({ start: 0, end: access.size });
      await access.close();
      const entries = ["-select_streams", "a:0", "-show_entries", "packet=pos,size", "-of", "json"];
      const { stdout } = await run("ffprobe", ["-v", "error", ...entries, path], { maxBuffer: 1 << 26 });
      const packets = JSON.parse(stdout).packets as { pos?: string; size: string }[];
      for (const [i, { pos, size }] of packets.entries()) {
        if (i % 10 !== 5 || pos === undefined) continue;
        // Behind the headers of the container; in MPEG-TS within the first packet.
        const from = Number(pos) + 60;
        for (let bit = 0; bit < 40; bit++)
          bytes[from + ((bit * 3) % Math.min(110, Number(size)))]! ^= 1 << (bit % 8);
      }
      const media = await openMedia(memoryAccess(bytes), { audio: { conversion: CONVERSION } }, transcoder);
      const parts = [];
      for (let index = 0; index < media.segments.length; index++) parts.push(await tsSegment(media, index));
      media.close();
      const out = await scratchFile(concatBytes(parts), "ts");
      const pictures = (await probePackets(out)).filter(({ stream }) => stream === 0).length;
      assert.equal(pictures, 12 * 25);
      assert.deepEqual(await gapsOf(out), []);
      const { stderr } = await run("ffmpeg", ["-v", "error", "-i", out, "-map", "0:a:0", "-f", "null", "-"]);
      assert.equal(stderr, "");
    },
  );
}
