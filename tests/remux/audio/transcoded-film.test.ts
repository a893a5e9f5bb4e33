import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { isDeepStrictEqual, promisify } from "node:util";
import { concatBytes } from "../../../src/base/bytes.ts";
import { openFfmpeg } from "../../../src/cli/ffmpeg.ts";
import { adtsPrefix, parseAacConfig, setAdtsLength } from "../../../src/media/aac.ts";
import { AudioTranscoder, PREROLL_SECONDS } from "../../../src/remux/audio/transcoder.ts";
import { BuiltinCodecs } from "../../../src/remux/codecs/builtin-codecs.ts";
import { FfmpegCodecs } from "../../../src/remux/codecs/ffmpeg-codecs.ts";
import type { Media, MediaPart, SoundSlice } from "../../../src/remux/contract.ts";
import { openMedia } from "../../../src/remux/open-media.ts";
import type { TsMuxPacket } from "../../../src/remux/ts-mux-input.ts";
import { readCodecProgram } from "../../../src/runtime/codec-scripts.ts";
import { testsThatNeed } from "../../parts/needs.ts";
import { makeMedia, scratchFile } from "../make-media.ts";
import { fileAccess } from "../media-checks.ts";
import { H264 } from "../media-files.ts";
import { fmp4Segment, tsSegment } from "../segments.ts";

const { test } = await testsThatNeed("ffmpeg");
const run = promisify(execFile);
const transcoder = new AudioTranscoder(new BuiltinCodecs(readCodecProgram));
const ffmpegTranscoder = openFfmpeg(process.env).then((ran) => new AudioTranscoder(new FfmpegCodecs(ran)));
// Without ffmpeg the tests are skipped.
ffmpegTranscoder.catch(() => {});
const SECONDS = 13;
const CONVERSION = { all: true, mp3: true, ac3: true, isHls: false, channels: 2 } as const;

/** A rising tone, a pulsing one and noise, so that a shifted, missing or repeated piece is noticed. */
const SOUND = "0.3*sin(2*PI*(200+20*t)*t)+0.03*random(0)|0.3*sin(2*PI*440*t)*(0.6+0.4*sin(2*PI*3*t))";
const SURROUND = `${SOUND}|0.2*sin(2*PI*300*t)|0.05*sin(2*PI*50*t)|0.1*sin(2*PI*500*t)|0.1*sin(2*PI*700*t)`;

function clip(sound: string, audio: string): string[] {
  const inputs = [
    `testsrc2=size=320x180:rate=25:duration=${SECONDS}`,
    `aevalsrc=${sound}:s=48000:d=${SECONDS}`,
  ];
  return [...inputs.flatMap((input) => ["-f", "lavfi", "-i", input]), ...H264, ...audio.split(" ")];
}

const FILES: Record<string, { name: string; args: string[] }> = {
  "MKV, AC-3 5.1": { name: "ac3.mkv", args: clip(SURROUND, "-c:a ac3 -b:a 384k") },
  "MP4, AC-3 5.1": { name: "ac3.mp4", args: clip(SURROUND, "-c:a ac3 -b:a 384k") },
  "MP4 in fragments, E-AC-3": {
    name: "eac3.mp4",
    args: clip(SOUND, "-c:a eac3 -movflags +frag_keyframe+empty_moov+delay_moov"),
  },
  "MPEG-TS, AC-3 5.1": { name: "ac3.ts", args: clip(SURROUND, "-c:a ac3 -b:a 384k") },
  "MPEG-TS, MP2": { name: "mp2.ts", args: clip(SOUND, "-c:a mp2") },
  "MKV, DTS": { name: "dts.mkv", args: clip(SOUND, "-c:a dca -strict -2") },
  "MKV, MP2": { name: "mp2.mkv", args: clip(SOUND, "-c:a mp2") },
  "MKV, MP3 at 44.1 kHz": { name: "mp3.mkv", args: clip(SOUND, "-c:a libmp3lame -ar 44100") },
  "MKV, PCM": { name: "pcm.mkv", args: clip(SOUND, "-c:a pcm_s16le") },
  "MKV, FLAC": { name: "flac.mkv", args: clip(SOUND, "-c:a flac") },
  "MP4, FLAC 5.1 with 24 bits": {
    name: "flac.mp4",
    args: clip(SURROUND, "-c:a flac -sample_fmt s32 -bits_per_raw_sample 24 -strict -2"),
  },
  "MPEG-TS, Opus": { name: "opus.ts", args: clip(SOUND, "-c:a libopus") },
  "MPEG-TS of Blu-ray, PCM 5.1 of 24 bits": {
    name: "pcm.m2ts",
    args: clip(SURROUND, "-af aformat=channel_layouts=5.1(side) -c:a pcm_bluray -sample_fmt s32"),
  },
  "MPEG-TS, DTS": { name: "dts.ts", args: clip(SOUND, "-c:a dca -strict -2") },
  "MKV, Opus": { name: "opus.mkv", args: clip(SOUND, "-c:a libopus") },
};

for (const [what, file] of Object.entries(FILES)) {
  test(`openMedia conversion, ${what}: the AAC of TS and fMP4 correlates with the source above 0.98, without offset`, async () => {
    const path = await makeMedia(file.name, file.args);
    const access = await fileAccess(path);
    const media = await openMedia(access, { audio: { conversion: CONVERSION } }, transcoder);
    try {
      assert.equal(media.tracks.find(({ kind }) => kind === "audio")?.codec, "aac");
      const source = await samplesOf(path);
      for (const kind of ["ts", "fmp4"] as const) {
        const out = await samplesOf(await written(media, kind));
        assert.ok(correlation(source, out) > 0.98, `${kind}: ${correlation(source, out)}`);
      }
    } finally {
      media.close();
      await access.close();
    }
  });
}

for (const what of ["MKV, AC-3 5.1", "MP4, AC-3 5.1", "MPEG-TS, AC-3 5.1", "MPEG-TS, MP2"]) {
  test(`openMedia conversion, ${what}: the AAC apart from the picture keeps its place beside it`, async () => {
    const file = FILES[what]!;
    const path = await makeMedia(file.name, file.args);
    const access = await fileAccess(path);
    const media = await openMedia(access, { audio: { conversion: CONVERSION } }, transcoder);
    try {
      const source = await samplesOf(path);
      for (const kind of ["ts", "fmp4"] as const) {
        if (media.separateAudio[kind].length === 0) continue;
        const picture = await written(media, kind, "video");
        for (const isSliced of [false, true]) {
          const out = await samplesOf(await written(media, kind, { audio: 1 }, isSliced), picture);
          assert.ok(correlation(source, out) > 0.98, `${kind}: ${correlation(source, out)}`);
        }
      }
    } finally {
      media.close();
      await access.close();
    }
  });
}

for (const layout of ["5.1", "stereo"]) {
  test(`openMedia conversion, MPEG-TS with AAC ${layout} in LATM: ffmpeg decodes the same samples`, async () => {
    const args = clip(layout === "5.1" ? SURROUND : SOUND, "-c:a aac -ar 44100 -mpegts_flags latm");
    const path = await makeMedia("latm.ts", args);
    const access = await fileAccess(path);
    const media = await openMedia(access, { audio: { conversion: CONVERSION } }, transcoder);
    try {
      const source = await samplesOf(path);
      assert.ok(source.length > 2 * 16000 * (SECONDS - 1));
      for (const kind of ["ts", "fmp4"] as const)
        assert.ok(isDeepStrictEqual(await samplesOf(await written(media, kind)), source), kind);
    } finally {
      media.close();
      await access.close();
    }
  });
}

test("openMedia conversion: slices of sound are the same in any order and by any of the opened files", async () => {
  for (const file of [FILES["MKV, AC-3 5.1"]!, FILES["MP4, AC-3 5.1"]!]) {
    const path = await makeMedia(file.name, file.args);
    const access = await fileAccess(path);
    const open = () => openMedia(access, { audio: { conversion: CONVERSION } }, transcoder);
    const slice = (media: Media, of: SoundSlice) =>
      tsSegment(media, of.segment, undefined, { audio: 1, slice: of });
    const media = await open();
    const inOrder: Uint8Array[] = [];
    // Those of the first segment, and some of the next ones.
    const slices = media.soundSlices.slice(0, 5);
    assert.ok(slices[0]!.segment < slices[4]!.segment);
    for (const each of slices) inOrder.push(await slice(media, each));
    for (const [index, each] of [...slices.entries()].reverse()) {
      const other = await open();
      assert.deepEqual(await slice(other, each), inOrder[index], `${file.name}: slice ${index}`);
      other.close();
    }
    media.close();
    await access.close();
  }
});

test("AudioTranscoder: a pure tone has no larger error at the borders of slices than elsewhere", async () => {
  const toneAt = (sample: number) => 0.4 * Math.sin((2 * Math.PI * 1000 * sample) / 48000);
  const packets = Array.from({ length: 600 }, (_, index) => {
    const samples = Float32Array.from({ length: 2 * 480 }, (_, i) => toneAt(index * 480 + (i >> 1)));
    const data = new Uint8Array(samples.buffer);
    return { track: 0, ptsSeconds: index / 100, durationSeconds: 0.01, isKey: true, data };
  });
  const source = { codec: "pcm-f32", config: undefined, sampleRate: 48000, channels: 2 };
  const plan = (await transcoder.plan(source, packets[0], 2))!;
  const borders = [1, 3, 5];
  const frames: TsMuxPacket[] = [];
  for (const [from, to] of [
    [0, 1],
    [1, 3],
    [3, 5],
    [5, 6],
  ] as const) {
    const before = packets.slice(Math.max(0, 100 * (from - PREROLL_SECONDS)), 100 * from);
    const part = { before, own: packets.slice(100 * from, 100 * to), isLast: to === 6 };
    frames.push(...(await transcoder.run(plan, part, new AbortController().signal)));
  }
  const prefix = adtsPrefix(parseAacConfig(plan.config));
  const adts = frames.map(({ data }) => {
    const frame = concatBytes([prefix, data]);
    setAdtsLength(frame, 0, frame.length);
    return frame;
  });
  const path = await scratchFile(concatBytes(adts), "aac");
  const args = ["-v", "error", "-i", path, "-af", "pan=mono|c0=c0", "-f", "f32le", "-"];
  const { stdout } = await run("ffmpeg", args, { encoding: "buffer", maxBuffer: 1 << 24 });
  const heard = new Float32Array(stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + stdout.length));
  const first = Math.round(frames[0]!.ptsSeconds * 48000);
  const errors = { border: 0, inside: 0 };
  // The tone begins and ends abruptly.
  for (let at = 9600; at < heard.length - 9600; at += 512) {
    let sum = 0;
    for (let i = at; i < at + 512; i++) sum += (heard[i]! - toneAt(first + i)) ** 2;
    const seconds = (first + at) / 48000;
    // The sound of a slice ends a little before the slice.
    const place = borders.some((border) => Math.abs(seconds - border) < 0.15) ? "border" : "inside";
    errors[place] = Math.max(errors[place], Math.sqrt(sum / 512));
  }
  assert.ok(errors.inside > 0 && errors.inside < 0.001, `${errors.inside}`);
  assert.ok(errors.border < 1.2 * errors.inside, `${errors.border} at borders, ${errors.inside} inside`);
});

const TRUEHD = { name: "truehd.mkv", args: clip(SOUND, "-c:a truehd -strict -2 -ar 48000") };

test("openMedia conversion with ffmpeg, TrueHD and Opus: the AAC correlates with the source above 0.98, without offset", async () => {
  for (const file of [TRUEHD, FILES["MKV, Opus"]!]) {
    const path = await makeMedia(file.name, file.args);
    const access = await fileAccess(path);
    const media = await openMedia(access, { audio: { conversion: CONVERSION } }, await ffmpegTranscoder);
    try {
      const out = await samplesOf(await written(media, "ts"));
      const similarity = correlation(await samplesOf(path), out);
      assert.ok(similarity > 0.98, `${file.name}: ${similarity}`);
    } finally {
      media.close();
      await access.close();
    }
  }
});

test("openMedia conversion, TrueHD: without ffmpeg the picture plays alone", async () => {
  const access = await fileAccess(await makeMedia(TRUEHD.name, TRUEHD.args));
  const media = await openMedia(access, { audio: { conversion: CONVERSION } }, transcoder);
  try {
    assert.equal(media.tsProblem, undefined);
    assert.deepEqual(
      media.tracks.map(({ kind }) => kind),
      ["video"],
    );
    assert.ok((await tsSegment(media, 0)).length > 10_000);
  } finally {
    media.close();
    await access.close();
  }
});

async function written(
  media: Media,
  kind: "ts" | "fmp4",
  part?: MediaPart,
  isSliced = false,
): Promise<string> {
  const parts: Uint8Array[] = kind === "fmp4" ? [await media.fmp4Init(undefined, part)] : [];
  const segment = kind === "ts" ? tsSegment : fmp4Segment;
  if (isSliced && typeof part === "object")
    for (const slice of media.soundSlices)
      parts.push(await segment(media, slice.segment, undefined, { ...part, slice }));
  else for (let i = 0; i < media.segments.length; i++) parts.push(await segment(media, i, undefined, part));
  return scratchFile(concatBytes(parts), kind === "ts" ? "ts" : "mp4");
}

/** The sound as stereo at 16 kHz, beginning with the first picture. */
async function samplesOf(path: string, picture = path): Promise<Float32Array> {
  const offset = (await firstSeconds(path, "a:0")) - (await firstSeconds(picture, "v:0"));
  const args = ["-v", "error", "-i", path, "-map", "0:a:0", "-ac", "2", "-ar", "16000", "-f", "f32le", "-"];
  const { stdout } = await run("ffmpeg", args, { encoding: "buffer", maxBuffer: 1 << 28 });
  const samples = new Float32Array(
    stdout.buffer.slice(stdout.byteOffset, stdout.byteOffset + (stdout.length & ~7)),
  );
  const lead = 2 * Math.round(Math.abs(offset) * 16000);
  if (offset < 0) return samples.subarray(lead);
  const padded = new Float32Array(lead + samples.length);
  padded.set(samples, lead);
  return padded;
}

/**
 * The time of the first frame that ffmpeg decodes. The start time of the stream does not show whether ffmpeg removes the sound before
 * zero: it removes the pre-skip of Opus, and what an edit list skips, but in fragmented MP4 it keeps the latter, at a negative time.
 */
async function firstSeconds(path: string, stream: string): Promise<number> {
  const packets = ["-select_streams", stream, "-read_intervals", "%+#8"];
  const probe = ["-v", "error", ...packets, "-show_entries", "frame=pts_time", "-of", "json", path];
  const { frames } = JSON.parse((await run("ffprobe", probe)).stdout) as { frames: { pts_time: string }[] };
  return Number(frames[0]!.pts_time);
}

/** The correlation of everything but the first and last tenth of a second. */
function correlation(a: Float32Array, b: Float32Array): number {
  let [both, first, second] = [0, 0, 0];
  for (let i = 3200; i < 2 * 16000 * SECONDS - 3200; i++) {
    both += a[i]! * (b[i] ?? 0);
    first += a[i]! ** 2;
    second += (b[i] ?? 0) ** 2;
  }
  return both / Math.sqrt(first * second);
}
