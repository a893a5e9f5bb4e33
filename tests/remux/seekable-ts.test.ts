import assert from "node:assert/strict";
import { test } from "node:test";
import { equalBytes } from "../../src/base/bytes.ts";
import type { ByteRange } from "../../src/base/range.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { seededRandom } from "../seeded-random.ts";
import { memoryAccess, wholeTs } from "./media-checks.ts";
import { mp4Box, rewriteMoov } from "./rewrite-mp4.ts";
import { rangeOfTs } from "./segments.ts";
import { checkTs } from "./ts-checker.ts";

const open = (bytes: Uint8Array) => openMedia(memoryAccess(bytes), { targetSeconds: 2 });

for (const name of ["front.mp4", "end.mp4", "tx3g.mp4"])
  test(`Media.seekableTs ${name}: its size is that of the segments, and they are its bytes`, async () => {
    const media = await open(await fixture(name));
    const whole = await wholeTs(media);
    const { size } = (await media.seekableTs!())!;
    assert.equal(size, whole.length);
    assert.ok(equalBytes(await rangeOfTs(media, { start: 0, end: size }), whole));
  });

test("Media.seekableTs: every range has the bytes of the whole, whichever was read before", async () => {
  const media = await open(await fixture("end.mp4"));
  const whole = await wholeTs(media);
  const random = seededRandom(1);
  const ranges = Array.from({ length: 40 }, () => {
    const [start, end] = [random(), random()]
      .map((share) => Math.floor(share * whole.length))
      .sort((a, b) => a - b);
    return { start: start!, end: end! + 1 };
  });
  const edges = [0, 1, 187, 188, whole.length - 188, whole.length - 1];
  for (const range of [...ranges, ...edges.map((start) => ({ start, end: start + 1 }))])
    assert.ok(
      equalBytes(await rangeOfTs(media, range), whole.subarray(range.start, range.end)),
      `${range.start} to ${range.end}`,
    );
});

test("Media.seekableTs: the size is known from the index, and a range reads the frames in it alone", async () => {
  const bytes = await fixture("end.mp4");
  let read = 0;
  const source = {
    size: bytes.length,
    read: async ({ start, end }: ByteRange) => {
      read += end - start;
      return bytes.slice(start, end);
    },
  };
  const media = await openMedia(source, { targetSeconds: 6 });
  read = 0;
  const { size } = (await media.seekableTs!())!;
  assert.equal(read, 0);
  for (const share of [0.25, 0.5, 0.75]) {
    read = 0;
    await rangeOfTs(media, { start: Math.floor(size * (1 - share)), end: size });
    assert.ok(
      read < bytes.length * (share + 0.15),
      `${read} of ${bytes.length} bytes were read for ${share}`,
    );
  }
});

test("Media.seekableTs: zeros follow frames that are smaller than planned, so that all positions stay", async () => {
  const bytes = await fixture("front.mp4");
  const { size } = (await (await open(bytes)).seekableTs!())!;
  // Each fifth frame after the first ones consists of a delimiter, which is omitted; another has a length beyond its end.
  const slices = slicesOf(bytes);
  for (const [i, at] of slices.entries()) if (i > 10 && i % 5 === 0) bytes[at + 4] = 9;
  bytes[slices[11]!] = 0x7f;
  const media = await open(bytes);
  const changed = await rangeOfTs(media, { start: 0, end: size });
  assert.equal((await media.seekableTs!())!.size, size);
  assert.equal(changed.length, size);
  assert.ok((await wholeTs(media)).length < size);
  assert.deepEqual(checkTs(changed, { isSegment: true }).faults, []);
  for (const share of [0.1, 0.3, 0.5, 0.7, 0.9]) {
    const range = { start: Math.floor(size * share), end: size };
    assert.ok(equalBytes(await rangeOfTs(media, range), changed.subarray(range.start)), `from ${share}`);
  }
});

test("Media.seekableTs: nothing if the index does not tell the size of all frames", async () => {
  for (const name of ["fragments.mp4", "sidx.mp4", "ac3.mkv", "clip.mpegts"])
    assert.equal(await (await open(await fixture(name))).seekableTs?.(), undefined, name);
  const shortLengths = await fixture("front.mp4");
  shortLengths[indexOf(shortLengths, "avcC") + 8] = 0xfd;
  assert.equal(await (await open(shortLengths)).seekableTs!(), undefined);
});

test("Media.seekableTs: nothing for a file that consists of pauses, which clock packets would fill", async () => {
  const bytes = rewriteMoov(await fixture("end.mp4"), (type, content) => {
    if (type !== "stts") return undefined;
    const runs = new DataView(
      content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength),
    );
    for (let at = 8; at + 8 <= runs.byteLength; at += 8) runs.setUint32(at + 4, 225 * runs.getUint32(at + 4));
    return mp4Box("stts", [new Uint8Array(runs.buffer)]);
  });
  const media = await open(bytes);
  assert.ok(media.durationSeconds > 1000);
  assert.equal(await media.seekableTs!(), undefined);
});

test("Media.seekableTs: closing the media ends a stream of a range", async () => {
  const media = await open(await fixture("end.mp4"));
  const { size } = (await media.seekableTs!())!;
  media.close();
  await assert.rejects(rangeOfTs(media, { start: 1, end: size }), { code: "cancelled" });
});

/** The positions of length fields in front of slices of H.264, in a file without other units of these types. */
function slicesOf(bytes: Uint8Array): number[] {
  const from = indexOf(bytes, "mdat") + 4;
  const found: number[] = [];
  for (let at = from; at + 5 < bytes.length; at++) {
    const length = new DataView(bytes.buffer).getUint32(at);
    const isSlice = [0x41, 0x01, 0x61, 0x21].includes(bytes[at + 4]!);
    if (isSlice && length > 8 && length < 4000 && at + 4 + length <= bytes.length) {
      found.push(at);
      at += 3 + length;
    }
  }
  return found;
}

function indexOf(bytes: Uint8Array, text: string): number {
  return Buffer.from(bytes.buffer).indexOf(text, 0, "latin1");
}
