import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { concatBytes, latin1Bytes, writeU16, writeU32 } from "../../src/base/bytes.ts";
import { eachMp4Box } from "../../src/media/mp4-boxes.ts";
import { parseMovieFragment, parseTrackExtends } from "../../src/media/mp4-moof.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { CountedFile } from "./file-access.ts";
import { lavfi, makeMedia } from "./make-media.ts";
import { decodedHash, decodeErrors, wholeTs } from "./media-checks.ts";
import { countByStream, probePackets } from "./probe.ts";
import { tsSegment } from "./segments.ts";

const { after, test } = await testsThatNeed("ffmpeg");

const WITH = { timeout: 60_000 };
const folder = await mkdtemp(join(tmpdir(), "sluice-fragmented-"));
after(() => rm(folder, { recursive: true, force: true }));

/** 4 Mbit/s, so that the file is too large to be read in full. */
const RATE = "-b:v 4M -minrate 4M -maxrate 4M -bufsize 2M -x264-params nal-hrd=cbr".split(" ");
const base = () =>
  makeMedia("fragment-base.mp4", [
    ...lavfi(40),
    ..."-c:v libx264 -preset ultrafast -bf 3 -b_strategy 0 -g 50".split(" "),
    ...RATE,
    ..."-c:a aac".split(" "),
  ]);

async function fragmented(name: string, flags: string, extra = ""): Promise<string> {
  const args = [
    "-i",
    await base(),
    "-c",
    "copy",
    "-movflags",
    `+empty_moov+delay_moov+default_base_moof${flags}`,
  ];
  return makeMedia(name, [...args, ...extra.split(" ").filter(Boolean)]);
}

/** Inserts a segment index after `moov`, with an entry for each key frame that covers all fragments up to the next one. */
async function withSegmentIndex(path: string): Promise<string> {
  const bytes = new Uint8Array(await readFile(path));
  let [moovEnd, timescale] = [0, 0];
  let defaults = new Map();
  const runs: { at: number; time: number }[] = [];
  let end = bytes.length;
  eachMp4Box(bytes, 0, bytes.length, ({ type, at, start, end: boxEnd }) => {
    if (type === "moov") {
      moovEnd = boxEnd;
      defaults = parseTrackExtends(bytes.subarray(start, boxEnd));
      const name = bytes.findIndex((_, i) => String.fromCharCode(...bytes.subarray(i, i + 4)) === "mdhd");
      timescale = new DataView(bytes.buffer).getUint32(name + 16);
    }
    if (type === "mfra") end = at;
    if (type !== "moof") return;
    const video = parseMovieFragment(bytes, start, boxEnd, at, defaults).find(({ trackId }) => trackId === 1);
    if (video?.samples[0]?.isKey) runs.push({ at, time: video.samples[0].pts });
  });
  const sidx = new Uint8Array(32 + runs.length * 12);
  writeU32(sidx, 0, sidx.length);
  sidx.set(latin1Bytes("sidx"), 4);
  for (const [at, value] of [[12, 1], [16, timescale], [20, runs[0]!.time]] as const) writeU32(sidx, at, value); // biome-ignore format: a table
  writeU32(sidx, 24, 0);
  writeU16(sidx, 30, runs.length);
  for (const [i, { at, time }] of runs.entries()) {
    writeU32(sidx, 32 + i * 12, (runs[i + 1]?.at ?? end) - at);
    writeU32(sidx, 36 + i * 12, (runs[i + 1]?.time ?? time + 2 * timescale) - time);
    writeU32(sidx, 40 + i * 12, 0x90000000);
  }
  const out = join(folder, "sidx.mp4");
  await writeFile(out, concatBytes([bytes.subarray(0, moovEnd), sidx, bytes.subarray(moovEnd, end)]));
  return out;
}

/** Replaces the `tfdt` boxes of all fragments by `free` boxes: writers before ISO 14496-12:2012 omitted them. */
async function withoutDecodeTimes(path: string): Promise<string> {
  const bytes = new Uint8Array(await readFile(path));
  eachMp4Box(bytes, 0, bytes.length, (moof) => {
    if (moof.type !== "moof") return;
    eachMp4Box(bytes, moof.start, moof.end, (traf) => {
      eachMp4Box(bytes, traf.start, traf.end, (box) => {
        if (box.type === "tfdt") bytes.set(latin1Bytes("free"), box.at + 4);
      });
    });
  });
  const out = join(folder, "no-tfdt.mp4");
  await writeFile(out, bytes);
  return out;
}

const FILES: Record<string, () => Promise<string>> = {
  "no index": () => fragmented("bare-large.mp4", "+frag_keyframe+skip_trailer"),
  "no index, fragments of half a second": () =>
    fragmented("bare-short.mp4", "+skip_trailer", "-frag_duration 500000"),
  "mfra, fragments of 0.7 s that do not begin with key frames": () =>
    fragmented("mfra-short.mp4", "", "-frag_duration 700000"),
  "sidx, several fragments in each of its segments": async () =>
    withSegmentIndex(await fragmented("many.mp4", "+frag_keyframe+skip_trailer", "-frag_duration 500000")),
  "no decode times": async () =>
    withoutDecodeTimes(await fragmented("bare-short.mp4", "+skip_trailer", "-frag_duration 500000")),
  "sample table first, then fragments": async () =>
    makeMedia("mixed.mp4", ["-i", await base(), ..."-c copy -t 12 -movflags +frag_keyframe".split(" ")]),
};

for (const [what, make] of Object.entries(FILES)) {
  test(
    `openMedia MP4, fragmented, ${what}: has every packet and the source's pictures, in any order of requests`,
    WITH,
    async () => {
      const path = await make();
      const source = await CountedFile.open(path);
      const media = await openMedia(source);
      const out = join(folder, "out.ts");
      const whole = await wholeTs(media);
      await writeFile(out, whole);
      assert.deepEqual(countByStream(await probePackets(out)), countByStream(await probePackets(path)));
      assert.equal(await decodeErrors(out), "");
      assert.equal(await decodedHash(out, "0:v:0"), await decodedHash(path, "0:v:0"));
      const other = await openMedia(source);
      const backwards: Uint8Array[] = [];
      for (let i = other.segments.length - 1; i >= 0; i--) backwards.unshift(await tsSegment(other, i));
      assert.ok(Buffer.concat(backwards).equals(whole), "the same bytes in reverse order");
      media.close();
      other.close();
    },
  );
}

for (const what of ["no index", "sidx, several fragments in each of its segments"]) {
  test(`openMedia MP4, fragmented, ${what}: opens and seeks with few reads`, WITH, async () => {
    const source = await CountedFile.open(await FILES[what]!());
    assert.ok(source.size > 15e6, `${source.size} bytes`);
    const media = await openMedia(source);
    const atOpen = source.takeBytesRead();
    assert.ok(atOpen < 2e6, `${atOpen} bytes to open`);
    assert.ok(Math.abs(media.durationSeconds - 40) < 0.3, `${media.durationSeconds} s`);
    const far = await tsSegment(media, media.segments.length - 2);
    const forFar = source.takeBytesRead();
    assert.ok(forFar < far.length + 2.5e6, `${forFar} bytes for a segment of ${far.length}`);
    media.close();
  });
}
