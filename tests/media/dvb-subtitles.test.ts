import assert from "node:assert/strict";
import { test } from "node:test";
import { DvbDecoder, type DvbState } from "../../src/media/subtitles/dvb-subtitles.ts";
import { bits, colours, dvbData, END, object, page, region, type SentSegment } from "./encode-dvb.ts";

const WHITE = [1, 235, 128, 128, 0] as const;

function decode(...segments: readonly SentSegment[]): DvbState | undefined {
  return new DvbDecoder({ composition: 1, ancillary: 2 }).push(dvbData(...segments), 10);
}

/** The rows of a part as texts of hexadecimal indexes. */
function rowsOf(state: DvbState | undefined, part = 0): string[] {
  const { runs, width, height } = state!.parts[part]!;
  let text = "";
  for (let at = 0; at < runs.length; at += 2) text += runs[at + 1]!.toString(16).repeat(runs[at]!);
  assert.equal(text.length, width * height);
  return Array.from({ length: height }, (_, row) => text.slice(row * width, (row + 1) * width));
}

const LINE_END = 0xf0;

test("DvbDecoder: every form of a run of 2 bits per pixel, and both fields", () => {
  const runs = [
    "01", // one pixel
    "00 1 001 10", // 4 of colour 2
    "00 0 1", // one of colour 0
    "00 0 0 01", // two of colour 0
    "00 0 0 10 0001 11", // 13 of colour 3
    "00 0 0 11 00000011 01", // 32 of colour 1
    "00 0 0 00",
  ].join("");
  const top = [0x10, ...bits(runs), LINE_END, 0x10, ...bits("10 00 0 0 00"), LINE_END];
  const bottom = [0x10, ...bits("11 00 0 0 00"), LINE_END];
  const state = decode(
    page([[4, 50, 60]]),
    region(4, [60, 4], 2, 0),
    colours([WHITE]),
    object(top, bottom),
    END,
  );
  const first = `12222000${"3".repeat(13)}${"1".repeat(32)}`.padEnd(60, "0");
  assert.deepEqual(rowsOf(state), [first, "3".padEnd(60, "0"), "2".padEnd(60, "0"), "0".repeat(60)]);
  assert.deepEqual([state!.width, state!.height, state!.parts[0]!.x, state!.parts[0]!.y], [720, 576, 50, 60]);
  assert.deepEqual([...state!.parts[0]!.palette.subarray(4, 8)], [255, 255, 255, 255]);
});

test("DvbDecoder: every form of a run of 4 bits per pixel", () => {
  const runs = [
    "1010", // one pixel
    "0000 0 011", // 5 of colour 0
    "0000 1 0 01 1111", // 5 of colour 15
    "0000 1 1 00", // one of colour 0
    "0000 1 1 01", // two of colour 0
    "0000 1 1 10 0010 0011", // 11 of colour 3
    "0000 1 1 11 00000001 0001", // 26 of colour 1
    "0000 0 000",
  ].join("");
  const top = [0x11, ...bits(runs), LINE_END];
  const state = decode(page([[4, 0, 0]]), region(4, [60, 2], 4, 0), colours([WHITE]), object(top), END);
  const row = `a00000fffff000${"3".repeat(11)}${"1".repeat(26)}`.padEnd(60, "0");
  // Without a bottom field, the top field is repeated.
  assert.deepEqual(rowsOf(state), [row, row]);
});

test("DvbDecoder: 8 bits per pixel, with lines that end in one byte or in two", () => {
  const [conforming, ffmpeg] = [
    [1, 0, 0x02, 0, 0x83, 5, 0, 0],
    [1, 0, 0x02, 0, 0x83, 5, 0],
  ];
  for (const line of [conforming, ffmpeg]) {
    const top = [0x12, ...line, LINE_END, 0x12, ...line, LINE_END];
    const state = decode(page([[4, 0, 0]]), region(4, [6, 4], 8, 0), colours([WHITE]), object(top), END);
    assert.deepEqual(rowsOf(state), Array(4).fill("100555"));
  }
});

test("DvbDecoder: shallow pixels in a deep region go through the map tables", () => {
  const line = (head: readonly number[]) => [...head, 0x10, ...bits("01 10 11 00 0 0 00"), LINE_END];
  const own = [0x20, 0x0e, 0xdc];
  const top = [...line([]), ...line(own)];
  const state = decode(page([[4, 0, 0]]), region(4, [3, 4], 4, 0), colours([WHITE]), object(top), END);
  assert.deepEqual(rowsOf(state), ["78f", "78f", "edc", "edc"]);
});

test("DvbDecoder: a page keeps what earlier ones have drawn, until an epoch begins", () => {
  const decoder = new DvbDecoder({ composition: 1, ancillary: 2 });
  const line = [0x11, ...bits("0001 0001 0000 0 000"), LINE_END];
  const first = dvbData(page([[4, 10, 10]]), region(4, [2, 2], 4, 0), colours([WHITE]), object(line), END);
  assert.equal(decoder.push(first, 1)?.parts.length, 1);
  assert.equal(decoder.push(dvbData(page([], { state: 0 }), END), 3)?.parts.length, 0);
  const again = decoder.push(dvbData(page([[4, 20, 30]], { state: 0 }), END), 4);
  assert.deepEqual([again?.parts[0]?.x, rowsOf(again)], [20, ["11", "11"]]);
  assert.deepEqual([again?.seconds, again?.untilSeconds], [4, 9]);
  assert.equal(decoder.push(dvbData(page([[4, 20, 30]]), END), 6)?.parts.length, 0);
});

test("DvbDecoder: pages of other languages are ignored, shared ones are not", () => {
  const line = [0x11, ...bits("0001 0000 0 000"), LINE_END];
  const other = { ...region(4, [2, 2], 4, 0), page: 7 };
  const shared = { ...region(4, [1, 2], 4, 0), page: 2 };
  assert.equal(decode(page([[4, 0, 0]]), other, object(line), END)?.parts.length, 0);
  assert.equal(decode(page([[4, 0, 0]]), shared, object(line), END)?.parts.length, 1);
});

test("DvbDecoder: the display definition moves the window, and damage is ignored", () => {
  const display = { type: 0x14, body: [8, 0x07, 0x7f, 0x04, 0x37, 0, 100, 0, 0, 0, 50, 0, 0] };
  const line = [0x11, ...bits("0001 0000 0 000"), LINE_END];
  const shown = [page([[4, 1, 2]]), region(4, [2, 2], 4, 0), object(line), END];
  const state = decode(display, ...shown);
  assert.deepEqual([state?.width, state?.height], [1920, 1080]);
  assert.deepEqual([state?.parts[0]?.x, state?.parts[0]?.y], [101, 52]);
  assert.equal(decode(page([[4, 0, 0]]), region(4, [0xffff, 0xffff], 8, 1), END)?.parts.length, 0);
  const whole = dvbData(...shown);
  for (let length = 0; length < whole.length; length++)
    new DvbDecoder({ composition: 1, ancillary: 2 }).push(whole.subarray(0, length), 0);
});

test("DvbDecoder: a packet that repeats a page and its region costs as much as one that does not", () => {
  const decoder = new DvbDecoder({ composition: 1, ancillary: 2 });
  const again = { state: 0 } as const;
  const set = [page([[4, 0, 0]]), region(4, [2, 2], 2, 1), colours([WHITE]), END];
  const packet = dvbData(
    ...set,
    page(
      [
        [4, 10, 10],
        [4, 20, 20],
      ],
      again,
    ),
    END,
    page(
      [
        [4, 30, 30],
        [4, 40, 40],
      ],
      again,
    ),
    END,
  );
  const state = decoder.push(packet, 10);
  assert.deepEqual(
    state?.parts.map(({ x }) => x),
    [30],
  );
});

test("DvbDecoder: small packets that draw large pictures again and again are ignored after a while", () => {
  const decoder = new DvbDecoder({ composition: 1, ancillary: 2 });
  const packet = dvbData(page([[4, 0, 0]]), region(4, [3840, 2160], 2, 1), colours([WHITE]), END);
  let shown = 0;
  for (let i = 0; i < 40; i++) if (decoder.push(packet, i)?.parts.length === 1) shown++;
  assert.ok(shown > 10 && shown < 33, `${shown} pictures`);
});
