import assert from "node:assert/strict";
import { test } from "node:test";
import { captionData } from "../../src/media/subtitles/caption-data.ts";
import { Cea708Decoder } from "../../src/media/subtitles/cea708.ts";
import { captionUnit, characters, defineWindow, dtvccPacket } from "./encode-cea708.ts";

/** The texts after each block of service 1. */
function texts(...blocks: readonly (readonly number[])[]): string[] {
  const decoder = new Cea708Decoder();
  for (const [seconds, block] of blocks.entries()) decoder.push(dtvccPacket(1, block), seconds);
  return decoder.states.map(({ text }) => text);
}

test("Cea708Decoder: a window is written while hidden, shown, and removed", () => {
  const decoder = new Cea708Decoder();
  const hidden = [...defineWindow(0, { isVisible: false }), ...characters("HELLO")];
  decoder.push(dtvccPacket(1, hidden), 1);
  decoder.push(dtvccPacket(1, [0x0d, ...characters("WORLD")]), 2);
  decoder.push(dtvccPacket(1, [0x89, 1]), 3);
  decoder.push(dtvccPacket(2, [...defineWindow(0), ...characters("OTHER")]), 4);
  decoder.push(dtvccPacket(1, [0x8c, 0xff]), 5);
  assert.deepEqual(decoder.states, [
    { seconds: 3, text: "HELLO\nWORLD" },
    { seconds: 5, text: "" },
  ]);
});

test("Cea708Decoder: lines roll up, and windows are in the order of the screen", () => {
  const rolled = texts(
    [...defineWindow(1), ...characters("ONE"), 0x0d, ...characters("TWO")],
    [0x0d, ...characters("SIX")],
  );
  assert.deepEqual(rolled, ["ONE\nTWO", "TWO\nSIX"]);
  const ordered = texts(
    [...defineWindow(2), ...characters("LOW")],
    [...defineWindow(5, { top: 3 }), ...characters("HIGH")],
  );
  assert.deepEqual(ordered, ["LOW", "HIGH\nLOW"]);
  // Swapped windows: one command hides and shows both.
  const swapped = texts(
    [
      ...defineWindow(0),
      ...characters("OLD"),
      ...defineWindow(1, { isVisible: false }),
      ...characters("NEW"),
    ],
    [0x8b, 3],
    [0x8a, 2],
  );
  assert.deepEqual(swapped, ["OLD", "NEW", ""]);
});

test("Cea708Decoder: characters of all tables, and codes that are skipped", () => {
  const skipped = [...defineWindow(0), 0x90, 5, 5, 0x91, 1, 2, 3, 0x97, 1, 2, 3, 4, 0x92, 1, 2];
  const skippedToo = [0x10, 0x0a, 9, 0x10, 0x93, 2, 1, 2, 0x21];
  const written = [0xe9, 0x10, 0x32, 0x7f, 0x10, 0x39, 0x18, 0xac, 0x00, 0x10, 0xa0, ...skippedToo];
  assert.deepEqual(texts(skipped, written), ["é’♪™가[CC]!"]);
  assert.deepEqual(texts([...defineWindow(0), ...characters("AB"), 0x08, 0x43], [0x0e], [0x8f]), ["AC", ""]);
});

test("Cea708Decoder: a packet in the data of several frames, and damage", () => {
  const triplets = dtvccPacket(1, [...defineWindow(0), ...characters("SPLIT TEXT")]);
  const decoder = new Cea708Decoder();
  for (let at = 0; at < triplets.length; at += 3) decoder.push(triplets.subarray(at, at + 3), at);
  assert.deepEqual(decoder.states, [{ seconds: triplets.length - 3, text: "SPLIT TEXT" }]);
  const late = new Cea708Decoder();
  late.push(triplets.subarray(3), 0);
  assert.deepEqual(late.states, []);
});

test("captionData: the caption data of H.264 and MPEG-2 frames, without padding", () => {
  const triplets = dtvccPacket(1, [...defineWindow(0), 0x41]);
  const frame = Uint8Array.from([0, 0, 0, 1, 9, 0xf0, ...captionUnit(triplets), 0, 0, 1, 0x65, 0x88, 0x80]);
  assert.deepEqual(captionData("h264", frame), triplets);
  const entries = [0xfd, 1, 2, 0xf8, 3, 4, 0xff, 5, 6];
  const mpeg2 = [
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    1,
    0xb2,
    ...characters("GA94"),
    3,
    0x43,
    0xff,
    ...entries,
    0,
    0,
    1,
    1,
    9,
  ];
  assert.deepEqual([...captionData("mpeg2video", Uint8Array.from(mpeg2))], [1, 1, 2, 3, 5, 6]);
  for (let length = 0; length < frame.length; length++) captionData("h264", frame.subarray(0, length));
});
