import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from "mediabunny";
import { concatBytes } from "../../src/base/bytes.ts";
import type { Media, MediaPart, RemuxFormat } from "../../src/remux/contract.ts";
import { openMedia } from "../../src/remux/open-media.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { memoryAccess } from "./media-checks.ts";
import { fmp4Segment, tsSegment } from "./segments.ts";

/** The sizes of the frames of each track, read by mediabunny from all segments of a part. */
async function framesOf(
  media: Media,
  format: RemuxFormat,
  part: MediaPart,
): Promise<Record<string, number[]>> {
  const parts: Uint8Array[] = format === "fmp4" ? [await media.fmp4Init(undefined, part)] : [];
  const segment = format === "ts" ? tsSegment : fmp4Segment;
  for (let index = 0; index < media.segments.length; index++)
    parts.push(await segment(media, index, undefined, part));
  const input = new Input({ formats: ALL_FORMATS, source: new BufferSource(concatBytes(parts)) });
  const frames: Record<string, number[]> = {};
  for (const [index, track] of (await input.getTracks()).entries()) {
    const sizes: number[] = [];
    for await (const { data } of new EncodedPacketSink(track).packets()) sizes.push(data.length);
    frames[`${index} ${track.type}`] = sizes;
  }
  input.dispose();
  return frames;
}

for (const name of ["hevc.mkv", "front.mp4", "fragments.mp4"]) {
  for (const format of ["ts", "fmp4"] as const) {
    test(`Media.remux ${name} as ${format}: picture and audio apart have the frames that they have together`, async () => {
      const media = await openMedia(memoryAccess(await fixture(name)), { targetSeconds: 2 });
      const all = await framesOf(media, format, "all");
      assert.deepEqual(await framesOf(media, format, "video"), { "0 video": all["0 video"] });
      const audio = media.separateAudio[format];
      assert.deepEqual(audio, name === "hevc.mkv" ? [1, 2] : [1]);
      for (const index of audio) {
        // Fragmented MP4 carries only the first audio track beside the picture; the two of the file are equal.
        const together = all[`${index} audio`] ?? all["1 audio"];
        assert.deepEqual(await framesOf(media, format, { audio: index }), { "0 audio": together });
      }
      await assert.rejects(media.remux(format, 0, 1, undefined, { audio: 0 }), { code: "no_such_segment" });
      await assert.rejects(media.remux(format, 0, 1, undefined, { audio: 9 }), { code: "no_such_segment" });
      media.close();
    });
  }
}
