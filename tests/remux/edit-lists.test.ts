import assert from "node:assert/strict";
import { test } from "node:test";
import { equalBytes } from "../../src/base/bytes.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess, wholeTs } from "./media-checks.ts";
import { type Edit, withEdits } from "./rewrite-mp4.ts";

const edit = (fromSeconds: number | undefined, seconds: number, rate = 1): Edit => ({
  fromSeconds,
  seconds,
  rate,
});
const open = async (edits: readonly Edit[]) =>
  openMedia(memoryAccess(withEdits(await fixture("end.mp4"), edits)), { targetSeconds: 2 });

const SAME: Record<string, readonly Edit[]> = {
  "parts that continue each other": [edit(0, 2), edit(2, 3), edit(5, 1)],
  "a part that ends earlier by the rounding of durations": [edit(0, 2.001), edit(2, 4)],
  "a pause at the end": [edit(0, 6), edit(undefined, 1)],
  "an empty part": [edit(0, 6), edit(3, 0)],
};
for (const [name, edits] of Object.entries(SAME))
  test(`edit list with ${name}: plays as with one edit`, async () => {
    const one = await open([edit(0, 6)]);
    const media = await open(edits);
    assert.equal(media.container, "mp4");
    assert.ok(equalBytes(await wholeTs(media), await wholeTs(one)));
  });

const CUTS: Record<string, readonly Edit[]> = {
  "a skipped part": [edit(0, 2), edit(3, 3)],
  "a repeated part": [edit(0, 2), edit(1, 3)],
  "a pause between parts": [edit(0, 2), edit(undefined, 1), edit(2, 4)],
  "a slow part": [edit(0, 2), edit(2, 4, 0.5)],
};
for (const [name, edits] of Object.entries(CUTS))
  test(`edit list with ${name}: the file itself, and an error with advice for HLS`, async () => {
    const media = await open(edits);
    assert.deepEqual([media.container, media.rawMime], ["raw", "video/mp4"]);
    assert.match(media.tsProblem!.message, /^multi-edit MP4 files are not remuxed; request \/ace\/getstream/);
  });

test("edit list with pauses before the first part: they add up to its delay", async () => {
  const [late, split] = [
    await open([edit(undefined, 1), edit(0, 6)]),
    await open([edit(undefined, 0.4), edit(undefined, 0.6), edit(0, 6)]),
  ];
  assert.ok(equalBytes(await wholeTs(late), await wholeTs(split)));
});
