import assert from "node:assert/strict";
import { test } from "node:test";
import { isPlayableName, mimeOf } from "../../src/base/mime.ts";
import { playOrder } from "../../src/base/play-order.ts";

/** The names that `playOrder` returns for files of these sizes. */
function order(files: Record<string, number>): string[] {
  return playOrder(
    Object.entries(files).map(([name, size], index) => ({
      ...{ index, name, size, mime: mimeOf(name), isPlayable: isPlayableName(name) },
    })),
  ).map(({ name }) => name);
}

test("playOrder of a film: its largest playable file, without samples, extras and archives", () => {
  assert.deepEqual(order({ "x/a.zip": 900, "x/Film.2019.mkv": 700, "x/Sample/film.mkv": 20 }), [
    "x/Film.2019.mkv",
  ]);
  assert.deepEqual(order({ "x/Film.mkv": 700, "x/Extras/Making of.mkv": 300 }), ["x/Film.mkv"]);
  assert.deepEqual(order({ "x/Film.mkv": 700, "x/Film (Director's cut).mkv": 800 }), [
    "x/Film (Director's cut).mkv",
  ]);
});

test("playOrder of a series: its episodes by number, not by size or place in the torrent", () => {
  const show = { "x/Show.S01E10.End.mkv": 900, "x/Show.S01E02.Two.mkv": 400, "x/Show.S01E01.Pilot.mkv": 300 };
  const names = ["x/Show.S01E01.Pilot.mkv", "x/Show.S01E02.Two.mkv", "x/Show.S01E10.End.mkv"];
  assert.deepEqual(order({ ...show, "x/Trailer.mkv": 10, "x/readme.txt": 1 }), names);
  assert.deepEqual(order({ ...show, "x/Special.mkv": 400 }), names);
});

test("playOrder of a series in folders of seasons", () => {
  assert.deepEqual(order({ "x/Season 10/1x01.avi": 5, "x/Season 2/1x02.avi": 5, "x/Season 2/1x01.avi": 5 }), [
    "x/Season 2/1x01.avi",
    "x/Season 2/1x02.avi",
    "x/Season 10/1x01.avi",
  ]);
});

test("playOrder of numbered names without marks: series and albums", () => {
  assert.deepEqual(order({ "[G] Show - 10 [AB12].mkv": 5, "[G] Show - 9 [77CD].mkv": 5 }), [
    "[G] Show - 9 [77CD].mkv",
    "[G] Show - 10 [AB12].mkv",
  ]);
  assert.deepEqual(order({ "a/02 - B.flac": 9, "a/01 - A.flac": 5, "a/cover.jpg": 1, "a/clip.mkv": 2 }), [
    "a/01 - A.flac",
    "a/02 - B.flac",
  ]);
});

test("playOrder without playable names: the largest file; without files: nothing", () => {
  assert.deepEqual(order({ "a.bin": 5, "b.bin": 9 }), ["b.bin"]);
  assert.deepEqual(order({}), []);
});
