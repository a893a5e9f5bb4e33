import assert from "node:assert/strict";
import { test } from "node:test";
import { readPesHeader } from "../../src/media/pes.ts";
import { TICKS_MODULUS } from "../../src/media/timestamps.ts";
import { PacketAligner } from "../../src/media/ts-align.ts";
import { payloadStartAt } from "../../src/media/ts-packet.ts";
import { TsRestamper } from "../../src/media/ts-restamp.ts";
import { TsMuxer } from "../../src/remux/ts-muxer.ts";
import { checkTs } from "../remux/ts-checker.ts";
import { seededRandom } from "../seeded-random.ts";
import { readTsPacket } from "./read-ts-packet.ts";

/** Two seconds with ten frames each, whose times end shortly before the wrap. */
function file(count = 20): Uint8Array {
  const muxer = new TsMuxer([{ codec: "h264", language: "und" }]);
  const from = TICKS_MODULUS / 90_000 - 13;
  return muxer.segment(
    Array.from({ length: count }, (_, i) => ({
      ...{ track: 0, ptsSeconds: from + i / 10, durationSeconds: 0.1, isKey: i === 0 },
      data: new Uint8Array(500).fill(i + 1),
    })),
  );
}

function restamped(rounds: number): Uint8Array[] {
  const restamper = new TsRestamper();
  return Array.from({ length: rounds }, (_, round) => {
    if (round > 0) restamper.restart();
    const packets = file();
    restamper.restamp(packets);
    return packets;
  });
}

test("TsRestamper: the first pass is unchanged, and all passes form one valid stream, also across the wrap", () => {
  const rounds = restamped(5);
  assert.deepEqual(rounds[0], file());
  const { faults } = checkTs(new Uint8Array(Buffer.concat(rounds)));
  assert.deepEqual(faults, []);
});

test("TsRestamper: each pass is shifted by the duration of the file", () => {
  const [first, second] = restamped(2);
  const clockOf = (bytes: Uint8Array) => {
    for (let at = 0; ; at += 188) {
      const { pcr } = readTsPacket(bytes, at);
      if (pcr !== undefined) return { pcr, pts: readPesHeader(bytes, payloadStartAt(bytes, at)).pts! };
    }
  };
  const [a, b] = [clockOf(first!), clockOf(second!)];
  assert.equal(b.pcr - a.pcr, 180_000);
  assert.equal(b.pts - a.pts, 180_000);
});

test("TsRestamper.join: a stream of one unit is followed by the next one after its duration", () => {
  const restamper = new TsRestamper();
  const streams = [file(), file(1), file()].map((packets) => {
    const first = readPesHeader(packets, payloadStartAt(packets, unitAt(packets)));
    restamper.join({ dts: first.dts!, pts: first.pts!, clock: undefined });
    restamper.restamp(packets);
    return packets;
  });
  const { faults } = checkTs(new Uint8Array(Buffer.concat(streams)));
  assert.deepEqual(
    faults.filter((fault) => /DTS/.test(fault)),
    [],
  );
});

/** The offset of the first packet with a PES header. */
function unitAt(packets: Uint8Array): number {
  for (let at = 0; ; at += 188) if (readTsPacket(packets, at).pcr !== undefined) return at;
}

test("TsRestamper: damaged packets keep their length and PID", () => {
  const random = seededRandom(9);
  for (let i = 0; i < 200; i++) {
    const broken = file();
    for (let j = 0; j < 300; j++) broken[Math.floor(random() * broken.length)] = random() * 256;
    const before = broken.slice();
    const restamper = new TsRestamper();
    restamper.restamp(broken);
    restamper.restart();
    restamper.restamp(broken);
    for (let at = 0; at < broken.length; at += 188)
      for (const byte of [0, 1, 2, 4]) assert.equal(broken[at + byte], before[at + byte]);
  }
});

test("PacketAligner: the packets do not depend on the chunks, and bytes between packets are dropped", () => {
  const bytes = file();
  const dirty = new Uint8Array(
    Buffer.concat([new Uint8Array(50), bytes.subarray(0, 1880), new Uint8Array(33), bytes.subarray(1880)]),
  );
  for (const size of [1, 187, 1000, 100_000]) {
    const aligner = new PacketAligner();
    const parts: Uint8Array[] = [];
    for (let at = 0; at < dirty.length; at += size)
      parts.push(aligner.push(dirty.slice(at, at + size)).slice());
    parts.push(aligner.finish());
    assert.deepEqual(new Uint8Array(Buffer.concat(parts)), bytes, `chunks of ${size}`);
    assert.equal(aligner.skippedBytes, 83);
  }
  const nothing = new PacketAligner();
  for (let i = 0; i < 100; i++) assert.equal(nothing.push(new Uint8Array(10_000)).length, 0);
  assert.ok(nothing.skippedBytes > 900_000, "bytes that are not packets are not buffered");
});
