import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import type { ByteRange } from "../../src/base/range.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { filmPictures } from "../../src/playback/film-pictures.ts";
import type { ContentFile, Transfer } from "../../src/transfer/contract.ts";
import { FakeMedia, track } from "../engine/fake-media.ts";
import { pgsClear, pgsPicture, supOf } from "../media/encode-pgs.ts";
import { programStream, subpicture } from "../media/encode-vobsub.ts";

const never = new AbortController().signal;

/** A transfer of a film and these files. `read` sums the bytes that were read. */
function transferOf(contents: Readonly<Record<string, Uint8Array>>) {
  const state = { read: 0 };
  const film = { index: 0, name: "Film.mkv", size: 700_000_000, offset: 0, mime: "", isPlayable: true };
  const files: ContentFile[] = [film];
  for (const [name, { length: size }] of Object.entries(contents))
    files.push({ index: files.length, name, size, offset: 0, mime: "", isPlayable: false });
  const source = (index: number) => ({
    read: async ({ start, end }: ByteRange) => {
      state.read += end - start;
      return contents[files[index]!.name]!.slice(start, end);
    },
  });
  return { transfer: { files, source } as unknown as Transfer, film, state };
}

test("filmPictures finds a time in a .sup file with few reads", async () => {
  // 4 s between pictures; what a picture shows does not compress.
  const pixels = Array.from({ length: 400 * 100 }, (_, index) => (index * 7919) % 251);
  const picture = pgsPicture({ width: 400, height: 100, x: 0, y: 0, pixels });
  const sets = Array.from({ length: 200 }, (_, index) => [
    [4 * index, picture] as const,
    [4 * index + 3, pgsClear()] as const,
  ]);
  const sup = supOf(sets.flat());
  const { transfer, film, state } = transferOf({ "Film.de.forced.sup": sup });
  const [own, ...more] = await filmPictures(transfer, film, new FakeMedia(), never);
  assert.deepEqual([own?.codec, own?.language, own?.isForced, more], ["pgs", "deu", true, []]);
  const states = await own!.states({ from: 600, to: 606 }, never);
  assert.deepEqual(
    states.map(({ seconds, parts }) => [seconds, parts.length]),
    [
      [600, 1],
      [603, 0],
      [604, 1],
    ],
  );
  assert.ok(state.read < sup.length / 3, `read ${state.read} of ${sup.length} bytes`);
  assert.deepEqual(await own!.states({ from: 5000, to: 5010 }, never), []);
  assert.equal((await own!.states({ from: 0, to: 5 }, never)).length, 3);
});

test("filmPictures lists each language of an .idx file, and reads its pictures from the .sub file", async () => {
  const packets = [4, 6, 8].map((width) =>
    programStream(
      subpicture({ x: 10, y: 20, width, height: 2, pixels: Array<number>(2 * width).fill(1) }),
      1,
    ),
  );
  const places = packets.map((_, index) =>
    packets.slice(0, index).reduce((sum, { length }) => sum + length, 0),
  );
  const lines = places.map((at, index) => `timestamp: 00:01:0${index}:000, filepos: ${at.toString(16)}\n`);
  const idx = encodeUtf8(`size: 720x576\nid: nl, index: 1\n${lines.join("")}`);
  const files = { "Subs/Film.idx": idx, "Subs/Film.sub": concatBytes(packets), "Subs/Other.idx": idx };
  const { transfer, film } = transferOf(files);
  const [own, ...more] = await filmPictures(transfer, film, new FakeMedia(), never);
  assert.deepEqual([own?.codec, own?.language, more], ["vobsub", "nld", []]);
  const states = await own!.states({ from: 61, to: 63 }, never);
  assert.deepEqual(
    states.map(({ seconds, parts }) => [Math.round(seconds), parts[0]?.width]),
    [
      [61, 6],
      [62, 8],
      [64, undefined],
    ],
  );
});

test("filmPictures lists the tracks that the media decodes", async () => {
  const media = new FakeMedia();
  const picture = { ...track("subtitle", "pgs"), isOpaque: true, isPicture: true };
  media.tracks = [...media.tracks, picture, { ...track("subtitle", "dvb_subtitle"), isOpaque: true }];
  Object.assign(media, { pictures: async (number: number) => [{ number }] });
  const { transfer, film } = transferOf({});
  const [own, ...more] = await filmPictures(transfer, film, media, never);
  assert.deepEqual([own?.number, own?.language, more], [2, "eng", []]);
  assert.deepEqual(await own!.states({ from: 0, to: 1 }, never), [{ number: 2 }]);
});
