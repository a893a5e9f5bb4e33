import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, latin1Bytes, writeU32 } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { buildFragment } from "../../src/media/mp4-fragment.ts";
import { parseFragmentAccess } from "../../src/media/mp4-index.ts";
import { parseMovieFragment, parseTrackExtends } from "../../src/media/mp4-moof.ts";

function words(...values: number[]): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  for (const [i, value] of values.entries()) writeU32(bytes, i * 4, value);
  return bytes;
}

function box(type: string, ...content: Uint8Array[]): Uint8Array {
  const body = concatBytes(content);
  return concatBytes([words(body.length + 8), latin1Bytes(type), body]);
}

const NONE = new Map();
const tfdt = (ticks: number) => box("tfdt", words(0, ticks));
const parse = (traf: Uint8Array, defaults = NONE) =>
  parseMovieFragment(traf, 0, traf.length, 1000, defaults)[0]!;

test("parseMovieFragment: reads what buildFragment writes", () => {
  const sample = (length: number, compositionOffset: number, isSync: boolean) => ({
    data: new Uint8Array(length),
    duration: 40,
    isSync,
    compositionOffset,
  });
  const samples = [sample(10, 80, true), sample(20, 0, false), sample(5, -40, false)];
  const bytes = buildFragment(1, [{ id: 7, decodeTime: 2 ** 33, samples }]);
  const moofEnd = new DataView(bytes.buffer).getUint32(0);
  const [track] = parseMovieFragment(bytes, 8, moofEnd, 500, NONE);
  assert.equal(track!.trackId, 7);
  const first = 500 + moofEnd + 8;
  assert.deepEqual(track!.samples, [
    { at: first, size: 10, pts: 2 ** 33 + 80, duration: 40, isKey: true },
    { at: first + 10, size: 20, pts: 2 ** 33 + 40, duration: 40, isKey: false },
    { at: first + 30, size: 5, pts: 2 ** 33 + 40, duration: 40, isKey: false },
  ]);
});

test("parseMovieFragment: a fragment overrides the defaults of moov, first_sample_flags overrides both", () => {
  const defaults = parseTrackExtends(box("mvex", box("trex", words(0, 3, 1, 20, 100, 0x10000))));
  assert.deepEqual(defaults.get(3), { duration: 20, size: 100, flags: 0x10000 });
  const head = box("tfhd", words(0x020008, 3, 30));
  const track = parse(box("traf", head, tfdt(5), box("trun", words(5, 2, 64, 0x2000000))), defaults);
  assert.deepEqual(track.samples, [
    { at: 1064, size: 100, pts: 5, duration: 30, isKey: true },
    { at: 1164, size: 100, pts: 35, duration: 30, isKey: false },
  ]);
});

test("parseMovieFragment: base_data_offset, and a run without offset continues the previous run", () => {
  const head = box("tfhd", words(1, 3, 0, 70_000));
  const runs = [box("trun", words(0x201, 1, 8, 50)), box("trun", words(0x200, 2, 60, 70))];
  const places = parse(box("traf", head, tfdt(0), ...runs)).samples.map(({ at }) => at);
  assert.deepEqual(places, [70_008, 70_058, 70_118]);
});

for (const [what, traf] of [
  ["no tfhd", box("traf", tfdt(0))],
  [
    "no tfdt and no known decode time",
    box("traf", box("tfhd", words(0x020000, 3)), box("trun", words(0, 0))),
  ],
  ["a truncated tfhd", box("traf", box("tfhd", words(0x020018, 3, 1)), tfdt(0))],
  [
    "more samples than bytes",
    box("traf", box("tfhd", words(0, 3)), tfdt(0), box("trun", words(0x200, 9, 1))),
  ],
  [
    "more samples than the limit",
    box("traf", box("tfhd", words(0, 3)), tfdt(0), box("trun", words(0, 2 ** 31))),
  ],
] as const) {
  test(`parseMovieFragment: ${what} is a DecodeError`, () => {
    assert.throws(() => parse(traf), DecodeError);
  });
}

test("parseMovieFragment: without tfdt, times continue from decodeTimes, which advance to the end of the fragment", () => {
  const traf = box("traf", box("tfhd", words(0x020008, 3, 30)), box("trun", words(1, 2, 64)));
  const decodeTimes = new Map([[3, 500]]);
  const [track] = parseMovieFragment(traf, 0, traf.length, 1000, NONE, decodeTimes);
  assert.deepEqual(
    track!.samples.map(({ pts }) => pts),
    [500, 530],
  );
  assert.equal(decodeTimes.get(3), 560);
});

test("parseFragmentAccess: sample numbers start at 0, samples of a second run are omitted", () => {
  const entry = (time: number, at: number, run: number, sample: number) =>
    concatBytes([words(time, at), new Uint8Array([1, run, sample])]);
  const tfra = box(
    "tfra",
    words(0, 9, 0, 3),
    entry(0, 100, 1, 1),
    entry(50, 100, 2, 4),
    entry(90, 700, 1, 3),
  );
  assert.deepEqual(parseFragmentAccess(tfra).get(9), [
    { time: 0, at: 100, sample: 0 },
    { time: 90, at: 700, sample: 2 },
  ]);
});
