import assert from "node:assert/strict";
import { test } from "node:test";
import { openTsFile } from "../../src/remux/ts-file.ts";
import { CAPTIONS, captionedTs } from "./captioned-ts.ts";
import { CountedFile } from "./file-access.ts";

test("openTsFile: captions in CEA-708 only are text subtitles, with the times of the picture", async () => {
  for (const targetSeconds of [3, 30]) {
    const media = await openTsFile(new CountedFile(captionedTs()), { targetSeconds });
    const index = media.tracks.findIndex(({ kind }) => kind === "subtitle");
    const { codec, title } = media.tracks[index]!;
    assert.deepEqual([codec, title], ["cea708", "Captions"]);
    const zero = media.zeroTicks / 90_000 - 10;
    const found: [number, number, string][] = [];
    // In any order: a segment does not depend on earlier requests.
    for (let segment = media.segments.length - 1; segment >= 0; segment--) {
      const cues = await media.cues(index, segment);
      found.unshift(
        ...cues.map(({ startSeconds, endSeconds, text }): [number, number, string] => [
          Math.round(25 * (startSeconds + zero)) / 25,
          Math.round(25 * (endSeconds + zero)) / 25,
          text,
        ]),
      );
    }
    assert.deepEqual(
      found,
      CAPTIONS.map((caption) => [...caption]),
    );
    media.close();
  }
});

test("openTsFile: captions that are in CEA-608 too are not listed, because players read those", async () => {
  const media = await openTsFile(new CountedFile(captionedTs([0, 0x94, 0x20])));
  assert.ok(media.tracks.every(({ kind }) => kind !== "subtitle"));
  const padded = await openTsFile(new CountedFile(captionedTs([0, 0x80, 0x80])));
  assert.ok(padded.tracks.some(({ kind }) => kind === "subtitle"));
});
