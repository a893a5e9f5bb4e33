import { assert } from "../../../src/base/assert.ts";
import { readPesHeader, writePesHeader } from "../../../src/media/pes.ts";
import { TICKS_MODULUS } from "../../../src/media/timestamps.ts";
import { TS_PACKET_BYTES } from "../../../src/media/ts-packet.ts";
import { nextUnit, unitHead } from "../../../src/media/ts-units.ts";
import { syntheticTs } from "../../remux/synthetic-ts.ts";
import type { FuzzTarget } from "../contract.ts";

function header(streamId: number, payload: number, pts: number, dts: number): Uint8Array {
  const bytes = new Uint8Array(32);
  writePesHeader(bytes, 0, streamId, payload, pts, dts);
  return bytes;
}

const pes: FuzzTarget = {
  name: "pes",
  corpus: () => [header(0xe0, 100_000, 900_000, 893_000), header(0xc0, 700, 2 ** 33 - 1, 2 ** 33 - 1)],
  maxBytes: 300,
  run(bytes) {
    const read = readPesHeader(bytes, 0);
    assert(read.payloadAt <= bytes.length, "the header ends inside");
    for (const time of [read.pts, read.dts])
      assert(time === undefined || (time >= 0 && time < TICKS_MODULUS), "33 bits");
    return read;
  },
};

const STREAM = syntheticTs(0.2);
const CODECS = ["h264", "hevc", "mpeg2video", "vc1"];

const units: FuzzTarget = {
  name: "ts-units",
  corpus: () => [STREAM, STREAM.slice(0, 188 * 40)],
  words: [new Uint8Array([0, 0, 1]), new Uint8Array([0x47, 0x41, 0, 0x30])],
  run(bytes) {
    const whole = bytes.subarray(0, bytes.length - (bytes.length % TS_PACKET_BYTES));
    let count = 0;
    for (const codec of CODECS) {
      const stream = { pid: 0x100, kind: "video", codec, language: "und" } as const;
      for (
        let unit = nextUnit(whole, 0, stream);
        unit;
        unit = nextUnit(whole, unit.at + TS_PACKET_BYTES, stream)
      ) {
        if (count++ % 8 === 0) unitHead(whole, unit.at, stream.pid, 512);
      }
    }
    return count;
  },
};

export const targets: FuzzTarget[] = [pes, units];
