import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { TICKS_PER_SECOND } from "../../src/media/timestamps.ts";
import { nextUnit } from "../../src/media/ts-units.ts";
import { BlockCache } from "../../src/remux/block-cache.ts";
import { walkBlocks } from "../../src/remux/cluster-walk.ts";
import { readMatroskaIndex } from "../../src/remux/matroska-index.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { TS_BASE_SECONDS } from "../../src/remux/ts-mux-input.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess } from "./media-checks.ts";
import { tsSegment } from "./segments.ts";

const AUDIO_TRACK = 2;
const AUDIO_PID = 0x101;

function element(id: readonly number[], content: Uint8Array): Uint8Array {
  const size = new Uint8Array(8);
  new DataView(size.buffer).setBigUint64(0, (1n << 56n) | BigInt(content.length));
  return concatBytes([Uint8Array.from(id), size, content]);
}

/** The fixture with each audio block after the first second stored `lateSeconds` later; `keeps` selects blocks by track and seconds. */
async function interleavedBadly(
  lateSeconds: number,
  keeps: (track: number, seconds: number) => boolean = () => true,
): Promise<Uint8Array> {
  const bytes = await fixture("streamed.mkv");
  const cache = new BlockCache(memoryAccess(bytes));
  const index = await readMatroskaIndex(cache);
  const blocks: { place: number; cluster: Uint8Array }[] = [];
  const walk = { start: index.firstCluster, bulkEnd: index.firstCluster, end: index.dataEnd };
  await walkBlocks(cache, walk, async ({ head, time, body }) => {
    const seconds = time * index.tickSeconds;
    if (!keeps(head.track, seconds)) return true;
    const block = concatBytes([
      Uint8Array.of(0x80 | head.track, 0, 0, head.isKey ? 0x80 : 0),
      ...(await body())!.frames,
    ]);
    const stamp = new Uint8Array(4);
    new DataView(stamp.buffer).setUint32(0, time);
    const cluster = element(
      [0x1f, 0x43, 0xb6, 0x75],
      concatBytes([element([0xe7], stamp), element([0xa3], block)]),
    );
    const late = head.track === AUDIO_TRACK && seconds > 1 ? lateSeconds : 0;
    blocks.push({ place: seconds + late, cluster });
    return true;
  });
  blocks.sort((a, b) => a.place - b.place);
  return concatBytes([bytes.subarray(0, index.firstCluster), ...blocks.map(({ cluster }) => cluster)]);
}

/** The times of the audio units in each segment, in seconds of the file's timeline. */
async function audioTimes(bytes: Uint8Array): Promise<number[][]> {
  const media = await openMedia(memoryAccess(bytes), { targetSeconds: 2 });
  const stream = { pid: AUDIO_PID, kind: "audio", codec: "aac", language: "und" } as const;
  const segments: number[][] = [];
  for (let i = media.segments.length - 1; i >= 0; i--) {
    const segment = await tsSegment(media, i);
    const times: number[] = [];
    for (let unit = nextUnit(segment, 0, stream); unit; unit = nextUnit(segment, unit.at + 188, stream))
      times.push(unit.pts / TICKS_PER_SECOND - TS_BASE_SECONDS);
    segments.unshift(times);
  }
  return segments;
}

test("MatroskaReader: audio that is stored 3 s late is in the segments of its picture", async () => {
  const [wanted, got] = [
    await audioTimes(await fixture("streamed.mkv")),
    await audioTimes(await interleavedBadly(3)),
  ];
  assert.deepEqual(
    got.map((times) => times.length > 0),
    [true, true, true],
  );
  // Audio units are collected anew in each segment, so only the ends are compared.
  for (const [i, times] of got.entries()) {
    assert.ok(Math.abs(times[0]! - wanted[i]![0]!) < 0.5, `segment ${i} begins at ${times[0]}`);
    assert.ok(Math.abs(times.at(-1)! - wanted[i]!.at(-1)!) < 0.5, `segment ${i} ends at ${times.at(-1)}`);
  }
});

test("MatroskaReader: a segment after the end of the audio has only the picture", async () => {
  const bytes = await interleavedBadly(0, (track, seconds) => track !== AUDIO_TRACK || seconds < 1.5);
  const times = await audioTimes(bytes);
  assert.deepEqual(
    times.map((list) => list.length > 0),
    [true, false, false],
  );
});
