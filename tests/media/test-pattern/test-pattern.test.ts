import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { concatBytes } from "../../../src/base/bytes.ts";
import { isDotSet } from "../../../src/media/test-pattern/font.ts";
import { PATTERN_FORMAT, PatternPainter } from "../../../src/media/test-pattern/picture.ts";
import { PATTERN_SOUND_CONFIG } from "../../../src/media/test-pattern/sound.ts";
import { TestPattern } from "../../../src/media/test-pattern/test-pattern.ts";
import { TS_BASE_SECONDS } from "../../../src/remux/ts-mux-input.ts";
import { TsMuxer } from "../../../src/remux/ts-muxer.ts";
import { testsThatNeed } from "../../parts/needs.ts";
import { scratchFile } from "../../remux/make-media.ts";
import { countByStream, ffmpegErrors, probePackets } from "../../remux/probe.ts";
import { checkTs } from "../../remux/ts-checker.ts";

const { test: ffmpegTest } = await testsThatNeed("ffmpeg");

const run = promisify(execFile);
const WITH = { timeout: 60_000 };
/** 2024-02-29 23:59:57 UTC, shortly before the end of a leap day. */
const START = 1_709_251_197;
const { width, height } = PATTERN_FORMAT;
/** Positions of the texts in squares of 4×4 pixels, and the size of a dot in squares. */
const CLOCK_AT = { x: 10, y: 43, scale: 3 };
const DATE_AT = { x: 4, y: 66, scale: 2 };
const FRAME_AT = { x: 134, y: 66, scale: 2 };

function muxed(from: number, seconds: number): Uint8Array {
  const muxer = new TsMuxer([
    { codec: "h264", language: "und" },
    { codec: "aac", language: "und", config: PATTERN_SOUND_CONFIG },
  ]);
  const pattern = new TestPattern();
  return concatBytes(
    Array.from({ length: seconds }, (_, i) =>
      muxer.segment(
        pattern.second(from + i).map((frame) => ({ ...frame, track: frame.track === "video" ? 0 : 1 })),
      ),
    ),
  );
}

async function decoded(ts: Uint8Array, format: string): Promise<Uint8Array> {
  const path = await scratchFile(ts, "ts");
  const kind =
    format === "f32le" ? ["-f", format] : ["-pix_fmt", format, "-fps_mode", "passthrough", "-f", "rawvideo"];
  const args = ["-v", "error", "-i", path, ...kind, "-"];
  const options = { encoding: "buffer", maxBuffer: 1 << 28 } as const;
  const { stdout } = await run("ffmpeg", args, options);
  return stdout;
}

/** Reads text from a decoded picture by comparing its squares with the glyphs. */
function read(luma: Uint8Array, place: { x: number; y: number; scale: number }, length: number): string {
  return Array.from({ length }, (_, i) => {
    const isBright = (dotX: number, dotY: number) => {
      const x = 4 * (place.x + (i * 6 + dotX) * place.scale) + 1;
      const y = 4 * (place.y + dotY * place.scale) + 1;
      return luma[y * width + x]! > 90;
    };
    const fits = [..."0123456789:-"].filter((glyph) => {
      for (let y = 0; y < 7; y++)
        for (let x = 0; x < 5; x++) if (isBright(x, y) !== isDotSet(glyph, x, y)) return false;
      return true;
    });
    return fits.length === 1 ? fits[0]! : "?";
  }).join("");
}

ffmpegTest(
  "TestPattern: ffmpeg decodes every frame without errors, and each picture shows its own time",
  WITH,
  async () => {
    const ts = muxed(START, 5);
    assert.equal(await ffmpegErrors(ts), "");
    const frames = await decoded(ts, "gray");
    assert.equal(frames.length, 125 * width * height);
    const texts = Array.from({ length: 125 }, (_, i) => {
      const luma = frames.subarray(i * width * height, (i + 1) * width * height);
      return `${read(luma, DATE_AT, 10)} ${read(luma, CLOCK_AT, 8)} ${read(luma, FRAME_AT, 2)}`;
    });
    const expected = texts.map((_, i) => {
      const iso = new Date((START + Math.floor(i / 25)) * 1000).toISOString();
      return `${iso.slice(0, 10)} ${iso.slice(11, 19)} ${String(i % 25).padStart(2, "0")}`;
    });
    assert.deepEqual(texts, expected);
    assert.ok(texts[75]!.startsWith("2024-03-01 00:00:00"));
  },
);

ffmpegTest(
  "FlatEncoder: decoded pictures differ from the painted ones by at most two levels, in key pictures and others",
  WITH,
  async () => {
    const frames = await decoded(muxed(START, 2), "yuv420p");
    const painter = new PatternPainter();
    let worst = 0;
    for (let i = 0; i < 50; i++) {
      const picture = painter.paint(START * 25 + i);
      const at = i * width * height * 1.5;
      for (let y = 0; y < height; y++)
        for (let x = 0; x < width; x++) {
          const expected = picture.luma[(y >> 2) * 160 + (x >> 2)]!;
          worst = Math.max(worst, Math.abs(frames[at + y * width + x]! - expected));
        }
      for (const [plane, values] of [picture.cb, picture.cr].entries()) {
        const from = at + width * height * (1 + plane / 4);
        for (let y = 0; y < height / 2; y++)
          for (let x = 0; x < width / 2; x++) {
            const expected = values[(y >> 2) * 80 + (x >> 2)]!;
            worst = Math.max(worst, Math.abs(frames[from + (y * width) / 2 + x]! - expected));
          }
      }
    }
    assert.ok(worst <= 2, `off by ${worst}`);
  },
);

ffmpegTest(
  "TestPattern: the stream is a valid transport stream whose presentation times are UNIX time",
  WITH,
  async () => {
    const ts = muxed(START, 10);
    const report = checkTs(ts);
    assert.deepEqual(report.faults, []);
    assert.equal(report.keyframes, 10);
    const path = await scratchFile(ts, "ts");
    const packets = await probePackets(path);
    assert.deepEqual(countByStream(packets), [250, 469]);
    const first = packets.find(({ stream }) => stream === 0)!;
    const wrapSeconds = 2 ** 33 / 90_000;
    assert.ok(Math.abs(first.pts - ((START + TS_BASE_SECONDS) % wrapSeconds)) < 0.001, String(first.pts));
    assert.ok(ts.length * 8 < 10 * 1_500_000, `${ts.length} bytes`);
  },
);

ffmpegTest("TestPattern: a beep of 1 kHz begins every second, with silence in between", WITH, async () => {
  const bytes = await decoded(muxed(START, 3), "f32le");
  const samples = new Float32Array(bytes.slice().buffer);
  const loudest = (from: number, to: number) => {
    let peak = 0;
    for (let i = Math.round(from * 48_000); i < to * 48_000; i++)
      peak = Math.max(peak, Math.abs(samples[i]!));
    return peak;
  };
  for (const second of [0, 1, 2]) {
    assert.ok(loudest(second + 0.03, second + 0.08) > 0.05, `no beep at ${second}`);
    assert.equal(loudest(second + 0.2, second + 0.95), 0, `no silence in ${second}`);
  }
  const beep = samples.subarray(1500, 5000);
  let crossings = 0;
  for (let i = 1; i < beep.length; i++) if (beep[i - 1]! < 0 && beep[i]! >= 0) crossings++;
  const hertz = (crossings * 48_000) / beep.length;
  assert.ok(Math.abs(hertz - 1020) < 60, `${hertz} Hz`);
});

test("PatternPainter: a message replaces the labels, in capital letters without accents, and is cut to the picture", () => {
  const columns = width / 4;
  const read = (message?: string) => {
    const { luma } = new PatternPainter(message).paint(0);
    const isBright = (x: number, y: number) => luma[(82 + y) * columns + x]! > 100;
    return Array.from({ length: 26 }, (_, i) =>
      [..." ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:+."].find((glyph) =>
        Array.from({ length: 35 }, (_, dot) => [dot % 5, Math.floor(dot / 5)] as const).every(
          ([x, y]) => isBright(4 + 6 * i + x, y) === isDotSet(glyph, x, y),
        ),
      ),
    ).join("");
  };
  assert.equal(read(), "UTC   SLUICE TEST    FRAME");
  assert.equal(read("No source: Ché 5 + Жук"), "NO SOURCE: CHE 5 +        ");
  assert.equal(read("The quick brown fox jumps over"), "THE QUICK BROWN FOX JUMPS ");
  assert.equal(read("LAZY DOG 🎬 V.W"), "LAZY DOG   V.W            ");
});

test("TestPattern: a new instance produces the same pictures", () => {
  const whole = new TestPattern();
  const sizes = whole.second(START).length + whole.second(START + 1).length;
  const again = new TestPattern();
  const pictures = (pattern: TestPattern, second: number) =>
    pattern.second(second).filter(({ track }) => track === "video");
  assert.equal(sizes, 25 + 25 + 47 + 47);
  assert.deepEqual(
    pictures(again, START + 2).map(({ data }) => data.length),
    pictures(whole, START + 2).map(({ data }) => data.length),
  );
});
