import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { openMedia } from "../../src/remux/open-media.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { makeMedia } from "./make-media.ts";
import { fileAccess } from "./media-checks.ts";

const { test } = await testsThatNeed("ffmpeg");
const run = promisify(execFile);

const VIDEO: Readonly<Record<string, string>> = {
  baseline: "libx264 -preset ultrafast -profile:v baseline",
  main: "libx264 -preset ultrafast -profile:v main -bf 2",
  high: "libx264 -preset veryfast -profile:v high",
  high10: "libx264 -preset ultrafast -profile:v high10 -pix_fmt yuv420p10le",
  hevc: "libx265 -preset ultrafast -x265-params log-level=none:pools=1",
  hevc10: "libx265 -preset ultrafast -pix_fmt yuv420p10le -x265-params log-level=none:pools=1",
  vp9: "libvpx-vp9 -deadline realtime -cpu-used 8",
};
const AUDIO: Readonly<Record<string, string>> = {
  aac: "aac", ac3: "ac3", eac3: "eac3", dts: "dca -strict -2", mp2: "mp2", mp3: "libmp3lame",
  opus: "libopus", flac: "flac -strict -2",
}; // biome-ignore format: a table

/** Film, video and audio; one for each codec and container that carries it. */
const FILMS: readonly (readonly [container: string, video: string, audio: string])[] = [
  ...["aac", "ac3", "eac3", "mp3", "opus", "flac"].map((audio) => ["mp4", "baseline", audio] as const),
  ...["aac", "ac3", "eac3", "dts", "mp2", "mp3", "opus", "flac"].map(
    (audio) => ["mkv", "main", audio] as const,
  ),
  ...["aac", "ac3", "eac3", "dts", "mp2", "mp3"].map((audio) => ["ts", "high", audio] as const),
  ...["mp4", "mkv", "ts"].flatMap((container) => [
    [container, "high10", "aac"] as const,
    [container, "hevc", "ac3"] as const,
    [container, "hevc10", "aac"] as const,
  ]),
  ["mkv", "vp9", "opus"],
  ["mp4", "vp9", "aac"],
];

interface ProbedStream {
  readonly codec_name: string;
  readonly profile?: string;
  readonly level?: number;
}

/** What the strings of RFC 6381 must be, from what ffprobe finds; of video, profile and level. */
function expected({ codec_name: codec, profile = "", level = 0 }: ProbedStream): RegExp {
  const byte = (value: number) => value.toString(16).padStart(2, "0");
  const profiles: Readonly<Record<string, number>> = {
    "Constrained Baseline": 0x42, Baseline: 0x42, Main: 0x4d, High: 0x64, "High 10": 0x6e,
  }; // biome-ignore format: a table
  const strings: Readonly<Record<string, string>> = {
    h264: `avc1\\.${byte(profiles[profile] ?? 0)}[0-9a-f]{2}${byte(level)}`,
    hevc: `(hvc1|hev1)\\.${profile === "Main 10" ? 2 : 1}\\.[0-9A-F]+\\.L${level}(\\.[0-9A-F]+)*`,
    vp9: "vp09\\.00\\.\\d\\d\\.08(\\.\\d\\d)*",
    aac: "mp4a\\.40\\.2", ac3: "ac-3", eac3: "ec-3", dts: "dts[c+]", mp2: "mp4a\\.(40\\.33|6B|69)",
    mp3: "mp4a\\.(40\\.34|6B|69)|mp3", opus: "opus", flac: "flac",
  }; // biome-ignore format: a table
  return new RegExp(`^(${strings[codec]})$`, "i");
}

test(`openMedia: the CODECS of ${FILMS.length} films are what ffprobe finds`, {
  timeout: 300_000,
}, async () => {
  assert.ok(FILMS.length >= 30);
  const wrong: string[] = [];
  for (const [container, video, audio] of FILMS) {
    const path = await makeMedia(`codecs-${video}-${audio}.${container}`, [
      ...["-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:duration=1"],
      ...["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=1", "-pix_fmt", "yuv420p"],
      ...["-c:v", ...VIDEO[video]!.split(" "), "-c:a", ...AUDIO[audio]!.split(" "), "-ac", "2"],
    ]);
    const probe = ["-v", "error", "-show_entries", "stream=codec_name,profile,level", "-of", "json", path];
    const { streams } = JSON.parse((await run("ffprobe", probe)).stdout) as { streams: ProbedStream[] };
    const access = await fileAccess(path);
    const media = await openMedia(access);
    for (const [index, { codecString }] of media.tracks.entries())
      if (!expected(streams[index]!).test(codecString ?? ""))
        wrong.push(`${video} ${audio} ${container}: ${codecString}, not ${expected(streams[index]!)}`);
    media.close();
    await access.close();
  }
  assert.deepEqual(wrong, []);
});
