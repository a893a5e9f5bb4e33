import assert from "node:assert/strict";
import { test } from "node:test";
import { findDisplaySet, PgsDecoder, readDisplaySet } from "../../src/media/pgs.ts";
import { pgsClear, pgsPicture, supOf } from "./encode-pgs.ts";

/** The colour indexes of runs. */
function pixelsOf(runs: Uint8Array): number[] {
  const pixels: number[] = [];
  for (let at = 0; at < runs.length; at += 2) pixels.push(...Array<number>(runs[at]!).fill(runs[at + 1]!));
  return pixels;
}

const PIXELS = [0, 1, 1, 2, ...Array<number>(70).fill(3), ...Array<number>(70).fill(0), 1, 2, 0, 0];

test("PgsDecoder returns the picture with its place and colours, and what follows it", () => {
  const decoder = new PgsDecoder();
  const palette = [
    [1, 235, 128, 128, 255],
    [2, 81, 240, 90, 128],
  ] as const;
  const shown = decoder.push(
    pgsPicture({ width: 74, height: 2, x: 100, y: 900, pixels: PIXELS, palette }),
    5,
  );
  assert.deepEqual([shown?.seconds, shown?.width, shown?.height, shown?.isForced], [5, 1920, 1080, false]);
  const [part] = shown!.parts;
  assert.deepEqual([part?.x, part?.y, part?.width, part?.height], [100, 900, 74, 2]);
  assert.deepEqual(pixelsOf(part!.runs), PIXELS);
  assert.deepEqual([...part!.palette.subarray(4, 8)], [255, 255, 255, 255]);
  const [red, green, blue, opacity] = part!.palette.subarray(8, 12);
  assert.ok(red! > 240 && green! < 50 && blue! < 50 && opacity === 128, `${[red, green, blue, opacity]}`);
  assert.deepEqual(decoder.push(pgsClear(), 7)?.parts, []);
});

test("PgsDecoder cuts the picture to the rectangle of the composition", () => {
  const pixels = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const crop = { x: 1, y: 1, width: 2, height: 9 };
  const [part] = new PgsDecoder().push(
    pgsPicture({ width: 3, height: 3, x: 0, y: 0, pixels, crop }),
    0,
  )!.parts;
  assert.deepEqual([part!.width, part!.height, pixelsOf(part!.runs)], [2, 2, [5, 6, 8, 9]]);
});

test("PgsDecoder refuses pictures of absurd size, and ignores damaged segments", () => {
  const bytes = pgsPicture({ width: 65_535, height: 65_535, x: 0, y: 0, pixels: [1] });
  assert.deepEqual(new PgsDecoder().push(bytes, 0)?.parts, []);
  for (let length = 0; length < 60; length++)
    new PgsDecoder().push(
      pgsPicture({ width: 2, height: 2, x: 0, y: 0, pixels: [1, 2, 3, 4] }).subarray(0, length),
      0,
    );
});

test("display sets of a .sup file are found from any position", () => {
  const picture = pgsPicture({ width: 2, height: 1, x: 0, y: 0, pixels: [1, 2] });
  const file = supOf([
    [1, picture],
    [2.5, pgsClear()],
  ]);
  const first = readDisplaySet(file, findDisplaySet(file, 0));
  assert.deepEqual([first?.seconds, first?.segments.length], [1, picture.length]);
  assert.equal(findDisplaySet(file, 1), first!.end);
  const second = readDisplaySet(file, first!.end);
  assert.deepEqual([second?.seconds, second?.end], [2.5, file.length]);
  assert.equal(readDisplaySet(file.subarray(0, -1), first!.end), undefined);
});

test("PgsDecoder ignores small packets that draw large pictures again and again, after a while", () => {
  const decoder = new PgsDecoder();
  const palette = [[1, 235, 128, 128, 255]] as const;
  const set = pgsPicture({ width: 3840, height: 2160, x: 0, y: 0, pixels: [], palette });
  let shown = 0;
  for (let i = 0; i < 40; i++) if (decoder.push(set, i)?.parts.length === 1) shown++;
  assert.ok(shown > 10 && shown < 33, `${shown} pictures`);
});
