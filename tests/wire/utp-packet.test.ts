import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import {
  decodeUtpPacket,
  encodeUtpPacket,
  type UtpHeader,
  updateUtpPacket,
} from "../../src/wire/utp-packet.ts";

const HEADER: UtpHeader = {
  kind: "data",
  connectionId: 0x1234,
  timestampUs: 0xfffffffe,
  delayUs: 77,
  windowBytes: 1024 * 1024,
  sequence: 65535,
  ack: 0,
};

test("decodeUtpPacket: round trip of each type", () => {
  for (const kind of ["data", "fin", "state", "reset", "syn"] as const) {
    const bytes = encodeUtpPacket({ ...HEADER, kind }, { payloadBytes: 3 });
    bytes.set([1, 2, 3], bytes.length - 3);
    const packet = decodeUtpPacket(bytes);
    const payload = Uint8Array.of(1, 2, 3);
    assert.deepEqual(packet, { ...HEADER, kind, selectiveAck: undefined, payload: packet.payload });
    assert.deepEqual(new Uint8Array(packet.payload), payload);
  }
});

test("encodeUtpPacket: the bytes of BEP 29", () => {
  const bytes = encodeUtpPacket({ ...HEADER, kind: "syn" }, { selectiveAck: Uint8Array.of(1, 0, 0, 128) });
  const head = [0x41, 1, 0x12, 0x34, 255, 255, 255, 254, 0, 0, 0, 77, 0, 16, 0, 0, 255, 255, 0, 0];
  assert.deepEqual([...bytes], [...head, 0, 4, 1, 0, 0, 128]);
});

test("encodeUtpPacket: padding gives any length and does not change the decoded packet", () => {
  const selectiveAck = Uint8Array.of(1, 2, 3, 4);
  for (const paddedBytes of [22, 23, 280, 537, 538, 539, 1_352, 2_000]) {
    for (const body of [{}, { payloadBytes: 9 }, { selectiveAck, payloadBytes: 4 }]) {
      const bare = encodeUtpPacket(HEADER, body).length;
      const bytes = encodeUtpPacket(HEADER, { ...body, paddedBytes });
      const expected = paddedBytes - bare < 2 ? bare : paddedBytes;
      assert.equal(bytes.length, expected);
      const packet = decodeUtpPacket(bytes);
      assert.equal(packet.payload.length, "payloadBytes" in body ? body.payloadBytes : 0);
      assert.deepEqual(
        packet.selectiveAck && [...packet.selectiveAck],
        "selectiveAck" in body ? [1, 2, 3, 4] : undefined,
      );
    }
  }
});

test("updateUtpPacket: changes only clocks, window and acknowledgement", () => {
  const bytes = encodeUtpPacket(HEADER, { payloadBytes: 1 });
  const news = { timestampUs: 5, delayUs: 6, windowBytes: 7, ack: 8 };
  updateUtpPacket(bytes, news);
  const { payload, selectiveAck, ...header } = decodeUtpPacket(bytes);
  assert.deepEqual(header, { ...HEADER, ...news });
  assert.deepEqual([payload.length, selectiveAck], [1, undefined]);
});

test("decodeUtpPacket: skips unknown extensions", () => {
  const bytes = encodeUtpPacket(HEADER);
  bytes[1] = 2;
  const { payload } = decodeUtpPacket(concatBytes([bytes, Uint8Array.of(9, 3, 1, 1, 1, 0, 0, 42)]));
  assert.deepEqual([...payload], [42]);
});

for (const [what, make] of [
  ["nothing", () => new Uint8Array(0)],
  ["less than a header", () => new Uint8Array(19).fill(1)],
  ["another version", () => changed(0, 0x02)],
  ["a type that there is not", () => changed(0, 0x51)],
  ["an extension that is not there", () => changed(1, 1)],
  ["an extension longer than the rest", () => concatBytes([changed(1, 1), Uint8Array.of(0, 5, 1, 2, 3, 4)])],
  [
    "extensions without end",
    () => concatBytes([changed(1, 9), new Uint8Array(400).map((_, i) => (i % 2 ? 0 : 9))]),
  ],
] as const) {
  test(`decodeUtpPacket: refuses ${what}`, () => {
    assert.throws(() => decodeUtpPacket(make()), DecodeError);
  });
}

function changed(at: number, value: number): Uint8Array {
  const bytes = encodeUtpPacket(HEADER);
  bytes[at] = value;
  return bytes;
}
