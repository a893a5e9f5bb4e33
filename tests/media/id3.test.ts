import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, latin1Bytes } from "../../src/base/bytes.ts";
import { readId3 } from "../../src/media/id3.ts";
import { id3Frame, id3Tag, timeFrame } from "./id3-tags.ts";

test("readId3: reads the time of the first audio frame in both versions, also after other frames and tags", () => {
  const title = id3Frame("TIT2", latin1Bytes("\0a title"));
  const cases = [
    [id3Tag(4, timeFrame(126_000n)), 126_000],
    [id3Tag(3, timeFrame(126_000n)), 126_000],
    [id3Tag(4, concatBytes([title, timeFrame((1n << 33n) - 1n)])), 2 ** 33 - 1],
    [concatBytes([id3Tag(4, title), id3Tag(4, timeFrame(5n))]), 5],
    [id3Tag(4, title), undefined],
    [id3Tag(4, concatBytes([new Uint8Array(20), timeFrame(5n)])), undefined],
  ] as const;
  for (const [tag, ticks] of cases)
    assert.deepEqual(readId3(concatBytes([tag, Uint8Array.of(255, 241)])), { length: tag.length, ticks });
});

test("readId3: ignores truncated tags and frames, and sizes that are too large", () => {
  const tag = id3Tag(4, timeFrame(126_000n));
  for (let length = 0; length < tag.length; length++)
    assert.deepEqual(readId3(tag.subarray(0, length)), { length: 0, ticks: undefined }, String(length));
  const lying = timeFrame(1n);
  lying[7] = 127;
  assert.deepEqual(readId3(id3Tag(4, lying)).ticks, undefined);
  const wide = concatBytes([tag, tag]);
  wide.set([127, 127, 127, 127], tag.length + 6);
  assert.equal(readId3(wide).length, tag.length);
});
