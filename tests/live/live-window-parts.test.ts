import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { PartCutter } from "../../src/live/window/live-window-parts.ts";
import { nullPackets, TS_PACKET_BYTES, writeTsHeader } from "../../src/media/ts-packet.ts";
import { seededRandom } from "../seeded-random.ts";

/** The part durations of a segment whose pieces have these spans, in ms. */
function partsOf(pieceMs: number, spans: readonly number[]): number[] {
  const cutter = new PartCutter(pieceMs);
  for (const [index, span] of spans.entries()) cutter.add(nullPackets(5), span, index === 0 ? 0 : -1);
  cutter.close();
  assert.equal(cutter.parts.at(-1)!.end, 5 * TS_PACKET_BYTES * spans.length);
  assert.deepEqual(
    cutter.parts.map(({ isIndependent }) => isIndependent),
    cutter.parts.map((_, index) => index === 0),
  );
  return cutter.parts.map(({ durationMs }) => durationMs);
}

const TABLE: readonly [pieceMs: number, spans: readonly number[], parts: readonly number[]][] = [
  [125, [125, 125, 125, 125], [250, 250]],
  [125, [60, 127, 125, 125, 126, 40], [275, 251, 40]],
  // A short late piece is not a part of its own, even if the part exceeds the target.
  [125, [125, 125, 170, 125, 125, 125], [250, 275, 250]],
  [125, [240, 125, 125], [240, 250]],
  // Small pieces of a peak are joined.
  [125, [125, 125, 50, 50, 50, 50, 50, 125], [250, 250, 125]],
  [50, [50, 50, 50, 50, 50, 50], [250, 50]],
  [500, [500, 500, 100], [500, 500, 100]],
  [500, [500, 300, 500, 100], [500, 550, 100]],
];
for (const [pieceMs, spans, parts] of TABLE) {
  test(`PartCutter: pieces of ${pieceMs} ms that take ${spans} make parts of ${parts}`, () => {
    assert.deepEqual(partsOf(pieceMs, spans), parts);
  });
}

const VIDEO_PID = 0x100;

/** Packets of one PES packet of video: `length` as its header states it, 0 for none; `stuffing` bytes in the last packet, 0 for none. */
function picture(packets: number, stuffing: number, length = 0): Uint8Array {
  const bytes = new Uint8Array(packets * TS_PACKET_BYTES).fill(0x5a);
  for (let at = 0; at < bytes.length; at += TS_PACKET_BYTES) {
    const isLast = at + TS_PACKET_BYTES === bytes.length;
    writeTsHeader(bytes, at, VIDEO_PID, at === 0, isLast && stuffing > 0, at / TS_PACKET_BYTES);
    if (isLast && stuffing > 0) bytes[at + 4] = stuffing - 1;
    if (isLast && stuffing > 1) bytes.fill(0xff, at + 6, at + 4 + stuffing).fill(0, at + 5, at + 6);
  }
  bytes.set([0, 0, 1, 0xe0, length >> 8, length & 255], 4);
  return bytes;
}

/** The ends of the parts, in packets, of pieces that are cut at `ends` and take 250 ms each. The segment starts with a random access point,
 * and `cutAt` is another one. */
function endsOf(media: Uint8Array, ends: readonly number[], cutAt = -1) {
  const cutter = new PartCutter(125);
  let start = 0;
  for (const end of ends) {
    const cut = cutAt >= start && cutAt < end ? (cutAt - start) * TS_PACKET_BYTES : -1;
    const piece = media.subarray(start * TS_PACKET_BYTES, end * TS_PACKET_BYTES);
    cutter.add(piece, 250, start === 0 ? 0 : cut);
    start = end;
  }
  cutter.close();
  const independent = cutter.parts.filter(({ isIndependent }) => isIndependent).map(({ start }) => start);
  return {
    ends: cutter.parts.map(({ end }) => end / TS_PACKET_BYTES),
    independent: independent.map((at) => at / TS_PACKET_BYTES),
  };
}

test("PartCutter: a picture that continues in the next piece belongs to the next part", () => {
  const media = concatBytes([picture(10, 40), picture(10, 1), nullPackets(2), picture(10, 2)]);
  assert.deepEqual(endsOf(media, [10, 32]).ends, [10, 32]);
  assert.deepEqual(endsOf(media, [9, 32]).ends, [32], "no part without a whole picture");
  assert.deepEqual(endsOf(media, [19, 32]).ends, [10, 32]);
  assert.deepEqual(endsOf(media, [20, 32]).ends, [20, 32], "one byte of stuffing ends a picture");
  assert.deepEqual(endsOf(media, [21, 32]).ends, [21, 32], "between pictures");
  assert.deepEqual(endsOf(media, [23, 32]).ends, [22, 32]);
  const full = concatBytes([picture(10, 3), picture(10, 0), picture(10, 0)]);
  assert.deepEqual(
    endsOf(full, [20, 30]).ends,
    [10, 20, 30],
    "the end of a picture without stuffing is not known",
  );
});

test("PartCutter: a packet with a clock and no stuffing does not end a picture", () => {
  const media = concatBytes([picture(10, 40), picture(10, 40)]);
  media.set([0x47, 1, 0, 0x30, 7, 0x10], 14 * TS_PACKET_BYTES);
  assert.deepEqual(endsOf(media, [15, 20]).ends, [10, 20]);
});

test("PartCutter: tables before a key frame stay with it, and make the part independent", () => {
  const media = concatBytes([picture(10, 40), nullPackets(2), picture(10, 40)]);
  assert.deepEqual(endsOf(media, [10, 15, 22], 10), { ends: [10, 22], independent: [0, 10] });
  assert.deepEqual(endsOf(media, [11, 15, 22], 11), { ends: [11, 22], independent: [0, 11] });
  assert.deepEqual(endsOf(media, [15, 22]), { ends: [12, 22], independent: [0] });
});

test("PartCutter: pictures that state their length, for which players wait, are cut where the piece ends", () => {
  const media = concatBytes([picture(10, 40, 1778), picture(10, 40, 1778)]);
  assert.deepEqual(endsOf(media, [15, 20]).ends, [15, 20]);
});

test("PartCutter: hostile packets make parts that cover the segment", () => {
  const random = seededRandom(5);
  for (let run = 0; run < 300; run++) {
    const media = Uint8Array.from({ length: 30 * TS_PACKET_BYTES }, () => 256 * random());
    for (let at = 0; at < media.length; at += TS_PACKET_BYTES)
      if (random() < 0.5) media.set([0x47, 0x41, 0, 0x10, 0, 0, 1, 0xe0, 0, 0], at);
    const { ends } = endsOf(media, [3, 7, 8, 20, 30], 9);
    assert.equal(ends.at(-1), 30);
    assert.ok(ends.every((end, i) => end > (ends[i - 1] ?? 0)));
  }
});
