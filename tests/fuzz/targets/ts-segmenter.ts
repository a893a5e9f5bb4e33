import { assert } from "../../../src/base/assert.ts";
import { TsSegmenter } from "../../../src/remux/ts-segmenter.ts";
import { syntheticTs } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

const STREAM = syntheticTs(1.2);

export const target: FuzzTarget = {
  name: "ts-segmenter",
  corpus: () => [STREAM.slice(0, 188 * 120), STREAM.slice(77, 188 * 60), syntheticTs(0.6, 95433.2)],
  words: [new Uint8Array([0x47]), STREAM.slice(0, 376), new Uint8Array([0, 0, 1, 0xe0])],
  maxBytes: 32 * 1024,
  run(bytes) {
    const segmenter = new TsSegmenter({ targetSeconds: 0.3, maxSegmentBytes: 16 * 1024 });
    const segments = [];
    const step = 1 + (bytes.length >> 2);
    for (let at = 0; at < bytes.length; at += step)
      segments.push(...segmenter.push(bytes.subarray(at, at + step)));
    segments.push(...segmenter.flush());
    for (const { bytes: made, durationSeconds } of segments) {
      assert(made.length % 188 === 0 && made[0] === 0x47, "whole packets");
      assert(durationSeconds >= 0 && Number.isFinite(durationSeconds), "a true duration");
    }
    return segments;
  },
};
