import { assert } from "../../../src/base/assert.ts";
import { clockReferenceAt } from "../../../src/media/ts-clock.ts";
import { payloadStartAt, TS_PACKET_BYTES } from "../../../src/media/ts-packet.ts";
import { alignPackets, detectLayout } from "../../../src/media/ts-sync.ts";
import { readTsPacket } from "../../media/read-ts-packet.ts";
import { syntheticTs } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

const STREAM = syntheticTs(0.2);

const packet: FuzzTarget = {
  name: "ts-packet",
  corpus: () =>
    Array.from({ length: 24 }, (_, i) => STREAM.slice(i * TS_PACKET_BYTES, (i + 1) * TS_PACKET_BYTES)),
  maxBytes: 400,
  run(bytes) {
    const read = readTsPacket(bytes, 0);
    assert(read.payloadAt <= TS_PACKET_BYTES, "the payload begins inside the packet");
    assert(payloadStartAt(bytes, 0) === read.payloadAt, "both ways find the same payload");
    const reference = clockReferenceAt(bytes, 0);
    assert((reference === undefined) === (read.pcr === undefined), "both ways find the same PCR");
    return read;
  },
};

const align: FuzzTarget = {
  name: "ts-align",
  corpus: () => [STREAM.slice(0, 188 * 12), STREAM.slice(100, 188 * 20), widened(192), widened(204)],
  words: [new Uint8Array([0x47]), STREAM.slice(0, 188), STREAM.slice(0, 189)],
  maxBytes: 8192,
  run(bytes) {
    const stride = detectLayout(bytes)?.stride ?? 188;
    const aligned = alignPackets(bytes, stride, false, true);
    assert(aligned.packets.length === aligned.starts.length * TS_PACKET_BYTES, "a start for each packet");
    for (let at = 0; at < aligned.packets.length; at += TS_PACKET_BYTES)
      assert(aligned.packets[at] === 0x47, "sync");
    const half = bytes.length >> 1;
    const first = alignPackets(bytes.subarray(0, half), stride, false, false);
    const second = alignPackets(bytes.subarray(first.used), stride, first.isSynced, true);
    assert(first.starts.length + second.starts.length === aligned.starts.length, "chunks do not matter");
    return aligned;
  },
};

function widened(stride: number): Uint8Array {
  const wide = new Uint8Array(16 * stride);
  for (let i = 0; i < 16; i++)
    wide.set(STREAM.subarray(i * 188, (i + 1) * 188), i * stride + (stride === 192 ? 4 : 0));
  return wide;
}

export const targets: FuzzTarget[] = [packet, align];
