import { assert } from "../../../src/base/assert.ts";
import { PieceCutter } from "../../../src/media/live-cut.ts";
import { pidAt } from "../../../src/media/ts-packet.ts";
import { syntheticTs } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

const STREAM = syntheticTs(1.2);
const PACKET_BYTES = 188;
const MAX_PIECE_BYTES = 16 * PACKET_BYTES;
const START_MS = 1_700_000_000_000;

/** Input of a broadcast: packets that start with the sync byte, with arbitrary contents. */
export const target: FuzzTarget = {
  name: "live-cut",
  corpus: () => [
    STREAM.slice(0, PACKET_BYTES * 120),
    STREAM.slice(PACKET_BYTES * 40, PACKET_BYTES * 100),
    syntheticTs(0.6, 95433.2),
  ],
  words: [STREAM.slice(0, 2 * PACKET_BYTES), new Uint8Array([0, 0, 1, 0xe0])],
  maxBytes: 32 * 1024,
  run(bytes) {
    const packets = bytes.slice(0, bytes.length - (bytes.length % PACKET_BYTES));
    for (let at = 0; at < packets.length; at += PACKET_BYTES) packets[at] = 0x47;
    const cutter = new PieceCutter({ pieceMs: 125, maxPieceBytes: MAX_PIECE_BYTES, segmentMs: 500 });
    const step = 7 * PACKET_BYTES;
    const pieces = [];
    let nowMs = START_MS;
    for (let at = 0; at < packets.length; at += step, nowMs += 20) {
      if ((cutter.nextWakeMs() ?? nowMs) < nowMs) pieces.push(...cutter.wake(nowMs));
      pieces.push(...cutter.push(packets.subarray(at, at + step), nowMs));
    }
    pieces.push(...cutter.finish(nowMs));
    let before = { timestampMs: START_MS, segment: 0 };
    for (const piece of pieces) {
      const { bytes: made, randomAccessOffset: access } = piece;
      assert(
        made.length % PACKET_BYTES === 0 && made.length <= MAX_PIECE_BYTES,
        "whole packets within the size",
      );
      assert(
        access === undefined || (access < made.length && pidAt(made, access) === 0),
        "begins with a PAT",
      );
      assert(piece.timestampMs >= before.timestampMs && piece.timestampMs <= nowMs, "time goes on");
      assert(piece.segment >= before.segment, "segments go on");
      before = piece;
    }
    return pieces;
  },
};
