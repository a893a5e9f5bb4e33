import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { openMedia } from "../../src/remux/open-media.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { lavfi, mediaPath } from "./make-media.ts";
import {
  decodedHash,
  decodeErrors,
  type ProbedPacket,
  probePackets,
  startTimes,
  wholeTs,
  writeHls,
} from "./media-checks.ts";
import { AAC, FILES, H264, withMedia } from "./media-files.ts";
import { tsSegment } from "./segments.ts";

const { test } = await testsThatNeed("ffmpeg");

const folder = await mkdtemp(join(tmpdir(), "sluice-open-media-"));
after(() => rm(folder, { recursive: true, force: true }));

function counts(packets: readonly ProbedPacket[]): number[] {
  const streams: number[] = [];
  for (const { stream } of packets) streams[stream] = (streams[stream] ?? 0) + 1;
  return streams;
}

/** Checks that the decode times of every stream increase, and none is after the presentation time. */
function assertTimes(packets: readonly ProbedPacket[]): void {
  const last: number[] = [];
  for (const { stream, pts, dts } of packets) {
    assert.ok(last[stream] === undefined || dts > last[stream], `DTS ${dts} after ${last[stream]}`);
    assert.ok(pts >= dts, `PTS ${pts} before DTS ${dts}`);
    last[stream] = dts;
  }
}

for (const [what, file] of Object.entries(FILES)) {
  test(`openMedia ${what}: TS has every packet with increasing times, and decodes to the same pictures without errors`, () =>
    withMedia(file, async (media, path) => {
      const out = join(folder, `${file.name}.ts`);
      await writeFile(out, await wholeTs(media));
      const [source, packets] = [await probePackets(path), await probePackets(out)];
      assert.deepEqual(counts(packets), counts(source));
      const keys = (list: ProbedPacket[]) => list.filter(({ stream, isKey }) => stream === 0 && isKey).length;
      assert.equal(keys(packets), keys(source));
      assertTimes(packets);
      assert.equal(await decodeErrors(out), "");
      assert.equal(await decodedHash(out, "0:v:0"), await decodedHash(path, "0:v:0"));
      const [sourceStarts, starts] = [await startTimes(path), await startTimes(out)];
      for (const [i, start] of starts.slice(0, sourceStarts.length).entries()) {
        // For MP4, ffprobe applies the edit list to the AAC priming, so only the video is compared.
        if (i > 0 && /mp4$/.test(file.name)) continue;
        assert.ok(
          Math.abs(start - starts[0]! - (sourceStarts[i]! - sourceStarts[0]!)) <= 0.001,
          `track ${i}`,
        );
      }
    }));

  test(`openMedia ${what}: HLS in TS and in fMP4 decodes to the source's frames`, () =>
    withMedia(file, async (media, path) => {
      const expected = await decodedHash(path, "0:v:0");
      for (const kind of ["ts", "fmp4"] as const) {
        const manifest = await writeHls(media, kind);
        assert.equal(await decodeErrors(manifest), "", kind);
        assert.equal(await decodedHash(manifest, "0:v:0"), expected, kind);
        await rm(dirname(manifest), { recursive: true });
      }
    }));

  test(`openMedia ${what}: segments have the same bytes in any order, also in parallel`, () =>
    withMedia(file, async (media, _, source) => {
      const inOrder: Buffer[] = [];
      for (let i = 0; i < media.segments.length; i++) inOrder.push(Buffer.from(await tsSegment(media, i)));
      const other = await openMedia(source);
      const backwards = await Promise.all(inOrder.map((_, i) => tsSegment(other, inOrder.length - 1 - i)));
      for (const [i, segment] of backwards.reverse().entries()) {
        assert.ok(inOrder[i]!.equals(Buffer.from(segment)), `segment ${i}`);
      }
      other.close();
    }));
}

test("openMedia segments: have no gaps, begin at key frames, and have the stated durations", () =>
  withMedia(FILES["MP4, index at the front"]!, async (media) => {
    assert.equal(media.container, "mp4");
    assert.deepEqual(
      media.segments.map(({ startSeconds, durationSeconds }) => [startSeconds, durationSeconds]),
      [
        [0, 2],
        [2, 4],
        [6, 6],
        [12, 6],
        [18, 2],
      ],
    );
    assert.equal(media.durationSeconds, 20);
  }));

test("openMedia of a transport stream: passes its packets through", () =>
  withMedia({ name: "pass.ts", args: [...lavfi(8), ...H264, ...AAC] }, async (media, path) => {
    assert.equal(media.container, "mpegts");
    const out = join(folder, "pass.out.ts");
    await writeFile(out, await wholeTs(media));
    assert.deepEqual(counts(await probePackets(out)), counts(await probePackets(path)));
  }));

test("openMedia audio.language: lists its track first, as the default", () =>
  withMedia(
    FILES["MKV, HEVC (open GOP) and AAC, two languages"]!,
    async (media) => {
      assert.deepEqual(
        media.tracks.map(({ kind, codec, language, isDefault }) => [kind, codec, language, isDefault]),
        [
          ["video", "hevc", "und", false],
          ["audio", "aac", "ger", true],
          ["audio", "aac", "eng", false],
        ],
      );
    },
    { audio: { language: "de" } },
  ));

test("openMedia: lists commentary after the other audio, by its flag or its title", () =>
  withMedia(
    {
      name: "commentary.mkv",
      args: [
        ...[...lavfi(4), ...H264, ...AAC, ..."-map 0 -map 1 -map 1 -map 1".split(" ")],
        ..."-disposition:a:0 comment -metadata:s:a:0 language=eng -metadata:s:a:1 language=fre".split(" "),
        ..."-metadata:s:a:1 title=Commentary -metadata:s:a:2 language=ger".split(" "),
      ],
    },
    async (media) =>
      assert.deepEqual(
        media.tracks.map(({ language }) => language),
        ["und", "ger", "eng", "fre"],
      ),
  ));

for (const [codecs, problem, name, args] of [
  [
    "VP9 and Opus",
    /^VP9 video .*container=fmp4/,
    "vp9.webm",
    "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 50 -c:a libopus",
  ],
  [
    "AV1 and Opus",
    /^AV1 video .*container=fmp4/,
    "av1.mkv",
    "-c:v libaom-av1 -cpu-used 8 -usage realtime -g 50 -c:a libopus",
  ],
] as const) {
  test(`openMedia ${codecs}: states why TS cannot carry it, and plays as fMP4`, () =>
    withMedia({ name, args: [...lavfi(8), ...args.split(" ")] }, async (media, path) => {
      assert.match(media.tsProblem!.message, problem);
      assert.equal(media.tsProblem!.code, "unsupported_codec");
      await assert.rejects(tsSegment(media, 0), { code: "unsupported_codec" });
      const manifest = await writeHls(media, "fmp4");
      assert.equal(await decodeErrors(manifest), "");
      assert.equal(await decodedHash(manifest, "0:v:0"), await decodedHash(path, "0:v:0"));
      await rm(dirname(manifest), { recursive: true });
    }));
}

test("openMedia MKV with fonts before the first cluster: does not read them", async () => {
  // A constant name, because it is part of the key of the generated file.
  const font = await mediaPath("font.ttf");
  await writeFile(font, new Uint8Array(3_000_000).fill(7));
  const args = `-c:v libx264 -preset ultrafast -g 50 -c:a aac -attach ${font} -metadata:s:t mimetype=font/ttf`;
  const file = { name: "fonts.mkv", args: [...lavfi(8), ...args.split(" ")] };
  await withMedia(file, async (media, _, source) => {
    assert.deepEqual(
      media.tracks.map(({ codec }) => codec),
      ["h264", "aac"],
    );
    assert.ok(source.bytesRead < 400_000, `${source.bytesRead} bytes read`);
    assert.ok((await tsSegment(media, 0)).length > 0);
  });
});

for (const [name, flags] of [
  ["rare.mkv", "-live 1 -f matroska"],
  [
    "rare-bare.mp4",
    "-movflags +frag_keyframe+empty_moov+delay_moov+skip_trailer -b:v 4M -minrate 4M -maxrate 4M -bufsize 4M -x264-params nal-hrd=cbr",
  ],
] as const) {
  test(`openMedia ${name}, key frames every eight seconds and no index: no segment is empty`, () => {
    const codecs = "-c:v libx264 -preset ultrafast -g 200 -keyint_min 200 -sc_threshold 0 -c:a aac";
    const args = [...lavfi(40), ...codecs.split(" "), ...flags.split(" ")];
    return withMedia({ name, args }, async (media) => {
      for (const [i, { durationSeconds }] of media.segments.entries()) {
        assert.ok(Math.abs(durationSeconds - 8) < 0.1, `segment ${i}: ${durationSeconds} s`);
        assert.ok((await tsSegment(media, i)).length > 50_000, `segment ${i}`);
      }
    });
  });
}

test("Media.fmp4Init: returns the same bytes at any time", () =>
  withMedia(FILES["MP4, index at the front"]!, async (media) => {
    const init = Buffer.from(await media.fmp4Init());
    // The creation and modification times of mvhd are the only values that could change.
    const at = init.indexOf("mvhd") + 4;
    const dates = init.subarray(at + 4, at + (init[at] === 1 ? 20 : 12));
    assert.ok(dates.every((byte) => byte === 0));
  }));

test("Media.tsSegment of MP4: reads only the bytes of the segment", () =>
  withMedia(FILES["MP4, index at the end"]!, async (media, _, source) => {
    source.bytesRead = 0;
    const segment = await tsSegment(media, 2);
    assert.ok(source.bytesRead <= segment.length, `${source.bytesRead} of ${segment.length}`);
  }));
