import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { openMedia } from "../../src/remux/open-media.ts";
import { hasFfmpeg, lavfi, mediaPath } from "./make-media.ts";
import { AAC, FILES, H264, withMedia } from "./media-files.ts";
import {
  decodedHash,
  decodeErrors,
  type ProbedPacket,
  probePackets,
  startTimes,
  wholeTs,
  writeHls,
} from "./media-judges.ts";

const skip = !(await hasFfmpeg());
const folder = await mkdtemp(join(tmpdir(), "sluice-open-media-"));
after(() => rm(folder, { recursive: true, force: true }));

function counts(packets: readonly ProbedPacket[]): number[] {
  const streams: number[] = [];
  for (const { stream } of packets) streams[stream] = (streams[stream] ?? 0) + 1;
  return streams;
}

/** Checks the times of every stream: decode times rise, and none is after its presentation. */
function assertTimes(packets: readonly ProbedPacket[]): void {
  const last: number[] = [];
  for (const { stream, pts, dts } of packets) {
    assert.ok(last[stream] === undefined || dts > last[stream], `DTS ${dts} after ${last[stream]}`);
    assert.ok(pts >= dts, `PTS ${pts} before DTS ${dts}`);
    last[stream] = dts;
  }
}

for (const [what, file] of Object.entries(FILES)) {
  test(
    `openMedia ${what}: TS has every packet, rising times, and decodes silently to the same`,
    { skip },
    () =>
      withMedia(file, async (media, path) => {
        const out = join(folder, `${file.name}.ts`);
        await writeFile(out, await wholeTs(media));
        const [source, packets] = [await probePackets(path), await probePackets(out)];
        assert.deepEqual(counts(packets), counts(source));
        const keys = (list: ProbedPacket[]) =>
          list.filter(({ stream, isKey }) => stream === 0 && isKey).length;
        assert.equal(keys(packets), keys(source));
        assertTimes(packets);
        assert.equal(await decodeErrors(out), "");
        assert.equal(await decodedHash(out, "0:v:0"), await decodedHash(path, "0:v:0"));
        const [sourceStarts, starts] = [await startTimes(path), await startTimes(out)];
        for (const [i, start] of starts.slice(0, sourceStarts.length).entries()) {
          // ffprobe hides the priming of AAC in MP4 behind its edit list: what it tells of the video is enough there.
          if (i > 0 && /mp4$/.test(file.name)) continue;
          assert.ok(
            Math.abs(start - starts[0]! - (sourceStarts[i]! - sourceStarts[0]!)) <= 0.001,
            `track ${i}`,
          );
        }
      }),
  );

  test(`openMedia ${what}: HLS in TS and in fMP4 decodes to the source's frames`, { skip }, () =>
    withMedia(file, async (media, path) => {
      const expected = await decodedHash(path, "0:v:0");
      for (const kind of ["ts", "fmp4"] as const) {
        if (kind === "fmp4" && media.fmp4Problem) {
          assert.match(media.fmp4Problem.message, /^MP2 audio cannot be carried in fragmented MP4/);
          continue;
        }
        const manifest = await writeHls(media, kind);
        assert.equal(await decodeErrors(manifest), "", kind);
        assert.equal(await decodedHash(manifest, "0:v:0"), expected, kind);
        await rm(dirname(manifest), { recursive: true });
      }
    }),
  );

  test(`openMedia ${what}: segments in any order are the same, also side by side`, { skip }, () =>
    withMedia(file, async (media, _, source) => {
      const inOrder: Buffer[] = [];
      for (let i = 0; i < media.segments.length; i++) inOrder.push(Buffer.from(await media.tsSegment(i)));
      const other = await openMedia(source);
      const backwards = await Promise.all(inOrder.map((_, i) => other.tsSegment(inOrder.length - 1 - i)));
      for (const [i, segment] of backwards.reverse().entries()) {
        assert.ok(inOrder[i]!.equals(Buffer.from(segment)), `segment ${i}`);
      }
      other.close();
    }),
  );
}

test("openMedia segments: lie without gaps, cut at key frames, as long as they say", { skip }, () =>
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
  }),
);

test("openMedia of a transport stream: passes it through", { skip }, () =>
  withMedia({ name: "pass.ts", args: [...lavfi(8), ...H264, ...AAC] }, async (media, path) => {
    assert.equal(media.container, "mpegts");
    const out = join(folder, "pass.out.ts");
    await writeFile(out, await wholeTs(media));
    assert.deepEqual(counts(await probePackets(out)), counts(await probePackets(path)));
  }),
);

test("openMedia preferredAudioLanguage: puts its track first and makes it the default", { skip }, () =>
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
    { preferredAudioLanguage: "de" },
  ),
);

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
  ["H.264 and FLAC", /^FLAC audio .*container=fmp4/, "flac.mkv", "-c:v libx264 -g 50 -c:a flac"],
] as const) {
  test(`openMedia ${codecs}: says why not in TS, and plays as fMP4`, { skip }, () =>
    withMedia({ name, args: [...lavfi(8), ...args.split(" ")] }, async (media, path) => {
      assert.match(media.tsProblem!.message, problem);
      assert.equal(media.tsProblem!.code, "unsupported_codec");
      await assert.rejects(media.tsSegment(0), { code: "unsupported_codec" });
      const manifest = await writeHls(media, "fmp4");
      assert.equal(await decodeErrors(manifest), "");
      assert.equal(await decodedHash(manifest, "0:v:0"), await decodedHash(path, "0:v:0"));
      await rm(dirname(manifest), { recursive: true });
    }),
  );
}

test("openMedia MKV with fonts before the film: does not read them", { skip }, async () => {
  // A name that stays: it is part of the file's key.
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
    assert.ok((await media.tsSegment(0)).length > 0);
  });
});

for (const [name, flags] of [
  ["rare.mkv", "-live 1 -f matroska"],
  [
    "rare-bare.mp4",
    "-movflags +frag_keyframe+empty_moov+delay_moov+skip_trailer -b:v 4M -minrate 4M -maxrate 4M -bufsize 4M -x264-params nal-hrd=cbr",
  ],
] as const) {
  test(`openMedia ${name}, key frames every eight seconds and no index: no segment is empty`, {
    skip,
  }, () => {
    const codecs = "-c:v libx264 -preset ultrafast -g 200 -keyint_min 200 -sc_threshold 0 -c:a aac";
    const args = [...lavfi(40), ...codecs.split(" "), ...flags.split(" ")];
    return withMedia({ name, args }, async (media) => {
      for (const [i, { durationSeconds }] of media.segments.entries()) {
        assert.ok(Math.abs(durationSeconds - 8) < 0.1, `segment ${i}: ${durationSeconds} s`);
        assert.ok((await media.tsSegment(i)).length > 50_000, `segment ${i}`);
      }
    });
  });
}

test("Media.fmp4Init: the same bytes whenever it is asked for", { skip }, () =>
  withMedia(FILES["MP4, index at the front"]!, async (media) => {
    const init = Buffer.from(await media.fmp4Init());
    // The creation and modification times of mvhd, the one thing that could tell.
    const at = init.indexOf("mvhd") + 4;
    const dates = init.subarray(at + 4, at + (init[at] === 1 ? 20 : 12));
    assert.ok(dates.every((byte) => byte === 0));
  }),
);

test("Media.tsSegment of MP4: reads what the segment holds, and nothing else", { skip }, () =>
  withMedia(FILES["MP4, index at the end"]!, async (media, _, source) => {
    source.bytesRead = 0;
    const segment = await media.tsSegment(2);
    assert.ok(source.bytesRead <= segment.length, `${source.bytesRead} of ${segment.length}`);
  }),
);
