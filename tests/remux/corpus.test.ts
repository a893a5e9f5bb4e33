import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { concatBytes } from "../../src/base/bytes.ts";
import type { Media } from "../../src/remux/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type Outcome, VARIANTS, type Variant } from "./corpus-variants.ts";
import { lavfi, makeMedia, mediaPath, scratchFile } from "./make-media.ts";
import { memoryAccess, wholeTs } from "./media-checks.ts";
import { frameHashes, type ProbedPacket, probePackets } from "./probe.ts";
import { fmp4Segment, rangeOfTs } from "./segments.ts";

const { test } = await testsThatNeed("ffmpeg");

const SECONDS = 5;
/** Matroska counts in milliseconds. */
const TOLERANCE_SECONDS = 0.002;

for (const variant of VARIANTS) {
  test(`openMedia ${variant.name}: ${outcomeText(variant.outcome)}`, { timeout: 60_000 }, async () => {
    const path = await fileOf(variant);
    const { outcome } = variant;
    const opening = openMedia(memoryAccess(await readFile(path)), { targetSeconds: 2 });
    if ("refused" in outcome) {
      const problem = await opening.then(
        ({ tsProblem, fmp4Problem }) => fmp4Problem && tsProblem,
        (error) => error,
      );
      assert.match(String(problem?.message), outcome.refused);
      return;
    }
    const media = await opening;
    if ("raw" in outcome) assert.equal(media.rawMime, outcome.raw);
    else await compare(variant, path, media);
    media.close();
  });
}

function outcomeText(outcome: Outcome): string {
  if ("raw" in outcome) return `the file itself, ${outcome.raw}`;
  if ("refused" in outcome) return "refused with a message";
  return "ts" in outcome ? "the packets of the source in MPEG-TS" : "the packets of the source in fMP4";
}

async function fileOf({ name, args, change }: Variant): Promise<string> {
  const subtitle = await mediaPath("corpus.srt");
  await writeFile(subtitle, "1\n00:00:01,000 --> 00:00:02,000\nHello\n");
  const inputs = [...lavfi(SECONDS, "96x54"), ...(args.includes("2:s") ? ["-i", subtitle] : [])];
  const made = await makeMedia(name, [...inputs, ...args.split(" ")]);
  return change ? scratchFile(change(new Uint8Array(await readFile(made))), name.split(".").pop()!) : made;
}

/** Compares count, times, key frames and pictures of the output with those of the source, packet by packet. */
async function compare({ outcome, isCut = false }: Variant, path: string, media: Media): Promise<void> {
  const isTs = "ts" in outcome;
  const bytes = isTs ? await streamOf(media) : await wholeFmp4(media);
  const out = await scratchFile(bytes, isTs ? "ts" : "mp4");
  const [source, packets] = [await probePackets(path), await probePackets(out)];
  const streams = [...new Set(source.map(({ stream }) => stream))].sort();
  const carried = isTs ? (outcome.ts === "all" ? streams : outcome.ts) : [0, 1];
  const of = (list: readonly ProbedPacket[], number: number) =>
    list.filter(({ stream }) => stream === number);
  const shift = of(packets, 0)[0]!.pts - of(source, carried[0]!)[0]!.pts;
  assert.equal(new Set(packets.map(({ stream }) => stream)).size, carried.length);
  for (const [at, stream] of carried.entries()) {
    const [was, is] = [of(source, stream), of(packets, at)];
    if (isCut)
      assert.ok(is.length > was.length * 0.9 && is.length <= was.length, `${is.length} of ${was.length}`);
    else assert.equal(is.length, was.length, `packets of stream ${stream}`);
    for (const [i, packet] of is.entries()) {
      const moved = packet.pts - was[i]!.pts - shift;
      assert.ok(Math.abs(moved) < TOLERANCE_SECONDS, `stream ${stream} packet ${i}: moved by ${moved} s`);
      assert.ok(
        packet.pts >= packet.dts && (i === 0 || packet.dts > is[i - 1]!.dts),
        `stream ${stream} packet ${i}: DTS`,
      );
      assert.equal(packet.isKey, was[i]!.isKey, `stream ${stream} packet ${i}: key frame`);
    }
  }
  if (media.tracks.every(({ kind }) => kind !== "video")) return;
  const [pictures, wanted] = [await frameHashes(out, "v:0"), await frameHashes(path, "v:0")];
  assert.deepEqual(pictures, isCut ? wanted.slice(0, pictures.length) : wanted);
}

/** The stream of known size if the file has one, else the segments. */
async function streamOf(media: Media): Promise<Uint8Array> {
  const seekable = await media.seekableTs?.();
  if (!seekable) return wholeTs(media);
  const stream = await rangeOfTs(media, { start: 0, end: seekable.size });
  assert.equal(stream.length, seekable.size);
  return stream;
}

async function wholeFmp4(media: Media): Promise<Uint8Array> {
  const parts = [await media.fmp4Init()];
  for (let i = 0; i < media.segments.length; i++) parts.push(await fmp4Segment(media, i));
  return concatBytes(parts);
}
