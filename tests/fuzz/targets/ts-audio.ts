import { audioUnits, splitFrames } from "../../../src/remux/audio/ts-audio.ts";
import { readPiece } from "../../../src/remux/ts-interleave.ts";
import { syntheticTs } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

export const target: FuzzTarget = {
  name: "ts-audio",
  corpus: () => [syntheticTs(0.5).subarray(0, 30_000)],
  words: [new Uint8Array([0x0b, 0x77]), new Uint8Array([0xff, 0xf1]), new Uint8Array([0x7f, 0xfe, 0x80, 1])],
  run(bytes) {
    const { packets, streams } = readPiece(bytes);
    return streams.map(({ pid }) => {
      const units = audioUnits(packets, pid);
      const half = units.length >> 1;
      return splitFrames(units.slice(0, half), units.slice(half));
    });
  },
};
