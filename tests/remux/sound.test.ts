import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { concatBytes } from "../../src/base/bytes.ts";
import type { Media } from "../../src/remux/contract.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { lavfi, makeMedia } from "./make-media.ts";
import { decodedHash, wholeTs } from "./media-checks.ts";
import { AAC, FILES, H264, withMedia } from "./media-files.ts";
import { probePackets } from "./probe.ts";
import { fmp4Segment } from "./segments.ts";

const { after, test } = await testsThatNeed("ffmpeg");

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), "sluice-sound-"));
after(() => rm(folder, { recursive: true, force: true }));

/** Checks that times equal those of the source plus ten seconds, within a millisecond (lip sync). */
const BASE_SECONDS = 10;
const TOLERANCE_SECONDS = 0.001;

async function written(media: Media, kind: "ts" | "fmp4"): Promise<string> {
  const path = join(folder, kind === "ts" ? "out.ts" : "out.mp4");
  const parts: Uint8Array[] = kind === "ts" ? [await wholeTs(media)] : [await media.fmp4Init()];
  if (kind === "fmp4")
    for (let i = 0; i < media.segments.length; i++) parts.push(await fmp4Segment(media, i));
  await writeFile(path, concatBytes(parts));
  return path;
}

/** Size and hash (the fifth and sixth column) of each coded frame of the first audio track, without the ADTS headers of the transport stream. */
async function codedFrames(path: string, isAdts: boolean): Promise<string[]> {
  const filter = isAdts ? ["-bsf:a", "aac_adtstoasc"] : [];
  const args = ["-v", "error", "-i", path, "-map", "0:a:0", "-c", "copy", ...filter, "-f", "framehash", "-"];
  const { stdout } = await run("ffmpeg", args, { maxBuffer: 1 << 26 });
  const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => line.split(",").slice(4, 6).join().replaceAll(" ", ""));
}

for (const [what, file] of Object.entries(FILES)) {
  test(`Media ${what}: every coded audio frame equals the source's, at the source's time, in TS and fMP4`, () =>
    withMedia(file, async (media, path) => {
      const audio = media.tracks.find(({ kind }) => kind === "audio")!.codec;
      const source = await probePackets(path);
      for (const kind of ["ts", "fmp4"] as const) {
        if (media.silentIn.includes(kind)) continue;
        const out = await written(media, kind);
        assert.deepEqual(
          await codedFrames(out, kind === "ts" && audio === "aac"),
          await codedFrames(path, false),
          kind,
        );
        const packets = await probePackets(out);
        for (const stream of [0, 1]) {
          const [was, is] = [source, packets].map((list) =>
            list.filter((packet) => packet.stream === stream),
          );
          assert.equal(is!.length, was!.length);
          for (const [i, { pts }] of is!.entries()) {
            const moved = pts - was![i]!.pts - BASE_SECONDS;
            assert.ok(
              Math.abs(moved) <= TOLERANCE_SECONDS,
              `${kind} stream ${stream} packet ${i}: ${moved} s`,
            );
          }
        }
      }
    }));
}

for (const [name, codec, codecString] of [
  ["ac3.mkv", "ac3", "ac-3"],
  ["mp2.mkv", "mp2", "mp4a.40.33"],
  ["mp2.ts", "mp2", "mp4a.40.33"],
  ["ac3.ts", "ac3", "ac-3"],
  ["eac3.ts", "eac3", "ec-3"],
] as const) {
  test(`Media ${name}: the audio decodes to the source's samples, and has its name for CODECS`, () =>
    withMedia(
      { name: `sound-${name}`, args: [...lavfi(14), ...H264, "-c:a", codec] },
      async (media, path) => {
        const out = await written(media, "ts");
        assert.equal(media.tracks[1]?.codecString, codecString);
        assert.equal(await decodedHash(out, "0:a:0"), await decodedHash(path, "0:a:0"));
      },
    ));
}

test("Media of MP4 with a gap in its audio: frames after the gap keep their times", async () => {
  const source = await makeMedia("hole-source.mp4", [...lavfi(8), ...H264, ...AAC]);
  // Without an edit list, the first frame lasts until the audio begins.
  const args = ["-i", source, ..."-c copy -movflags +frag_keyframe+empty_moov+default_base_moof".split(" ")];
  await withMedia({ name: "hole.mp4", args }, async (media, path) => {
    const [was, is] = await Promise.all([path, await written(media, "ts")].map(probePackets));
    const sound = (packets: typeof was) => packets!.filter(({ stream }) => stream === 1).slice(0, 8);
    const gap = sound(was)[1]!.pts - sound(was)[0]!.pts;
    assert.ok(gap > 0.05, `the source has a hole of ${gap} s`);
    for (const [i, { pts }] of sound(is).entries())
      assert.ok(
        Math.abs(pts - BASE_SECONDS - sound(was)[i]!.pts) <= TOLERANCE_SECONDS,
        `packet ${i}: ${pts}`,
      );
  });
});
