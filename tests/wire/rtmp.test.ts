import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, writeU32 } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { parseFlvAudio, parseFlvVideo } from "../../src/media/flv.ts";
import { decodeAmf, encodeAmf } from "../../src/wire/rtmp/amf0.ts";
import { encodeRtmpMessage, RtmpChunkReader } from "../../src/wire/rtmp/chunks.ts";

const LIMIT = 100_000;

function header(first: number, ...fields: readonly (readonly [bytes: number, value: number])[]): Uint8Array {
  const parts = fields.map(([bytes, value]) => {
    const field = new Uint8Array(4);
    writeU32(field, 0, value);
    return field.subarray(4 - bytes);
  });
  return concatBytes([Uint8Array.of(first), ...parts]);
}

const body = (length: number, value = 7) => new Uint8Array(length).fill(value);

test("RTMP chunks: all four header formats, and the times that follow from them", () => {
  const reader = new RtmpChunkReader(LIMIT);
  const messages = reader.push(
    concatBytes([
      header(0x04, [3, 1000], [3, 5], [1, 8], [4, 0x0100_0000]),
      body(5),
      header(0x44, [3, 20], [3, 6], [1, 9]),
      body(6),
      header(0x84, [3, 30]),
      body(6),
      header(0xc4), // The same step again.
      body(6),
    ]),
  );
  assert.deepEqual(
    messages.map(({ type, timestamp, payload }) => [type, timestamp, payload.length]),
    [
      [8, 1000, 5],
      [9, 1020, 6],
      [9, 1050, 6],
      [9, 1080, 6],
    ],
  );
});

test("RTMP chunks: extended timestamps are repeated in later chunks of the message", () => {
  const reader = new RtmpChunkReader(LIMIT);
  const time = 0xffff_fff0;
  const [message] = reader.push(
    concatBytes([
      header(0x05, [3, 0xff_ffff], [3, 200], [1, 9], [4, 0], [4, time]),
      body(128),
      header(0xc5, [4, time]),
      body(72),
    ]),
  );
  assert.equal(message?.timestamp, time);
  assert.equal(message?.payload.length, 200);
});

test("RTMP chunks: streams are interleaved; the chunk size and an abort take effect at once", () => {
  const reader = new RtmpChunkReader(LIMIT);
  const messages = reader.push(
    concatBytes([
      header(0x04, [3, 0], [3, 200], [1, 8], [4, 0]),
      body(128, 1),
      header(0x06, [3, 0], [3, 150], [1, 9], [4, 0]),
      body(128, 2),
      header(0xc4),
      body(72, 1),
      header(0x02, [3, 0], [3, 4], [1, 2], [4, 0], [4, 6]), // Abort of stream 6.
      header(0x02, [3, 0], [3, 4], [1, 1], [4, 0], [4, 1000]), // Chunks of 1000 bytes.
      header(0x06, [3, 0], [3, 900], [1, 9], [4, 0]),
      body(900, 3),
      header(0x00, [1, 10], [3, 0], [3, 1], [1, 9], [4, 0]), // Stream 74, with an id of two bytes.
      body(1, 4),
    ]),
  );
  assert.deepEqual(
    messages.map(({ payload }) => [payload.length, payload[0], payload.at(-1)]),
    [
      [200, 1, 1],
      [900, 3, 3],
      [1, 4, 4],
    ],
  );
});

test("RTMP chunks: what is written can be read, and limits hold", () => {
  const message = { type: 20, streamId: 1, timestamp: 0, payload: body(10_000) };
  const [read] = new RtmpChunkReader(LIMIT).push(encodeRtmpMessage(message, 3, 128));
  assert.deepEqual(read?.payload, message.payload);
  const refused = [
    header(0x04, [3, 0], [3, LIMIT + 1], [1, 8], [4, 0]),
    header(0xc4),
    header(0x02, [3, 0], [3, 4], [1, 1], [4, 0], [4, 0]),
    concatBytes(
      Array.from({ length: 17 }, (_, id) =>
        concatBytes([header(id + 3, [3, 0], [3, 9], [1, 8], [4, 0]), body(9)]),
      ),
    ),
    // Unfinished messages of several streams together.
    concatBytes([
      header(0x02, [3, 0], [3, 4], [1, 1], [4, 0], [4, 90_000]),
      header(0x04, [3, 0], [3, 95_000], [1, 8], [4, 0]),
      body(90_000),
      header(0x05, [3, 0], [3, 95_000], [1, 8], [4, 0]),
      body(90_000),
    ]),
  ];
  for (const bytes of refused) assert.throws(() => new RtmpChunkReader(LIMIT).push(bytes), DecodeError);
});

test("AMF0: values of all types that publishers send", () => {
  const values = [
    "connect",
    1,
    { app: "live", flashVer: "a", ok: true, none: null, more: [1, "x"] },
    undefined,
  ];
  assert.deepEqual(decodeAmf(encodeAmf(values)), values);
  // An ECMA array whose count is wrong, a date, and a long string.
  const array = Uint8Array.of(8, 0, 0, 0, 99, 0, 1, 0x61, 1, 1, 0, 0, 9);
  const date = concatBytes([Uint8Array.of(11), new Uint8Array(10)]);
  const long = Uint8Array.of(12, 0, 0, 0, 2, 0x68, 0x69);
  assert.deepEqual(decodeAmf(concatBytes([array, date, long])), [{ a: true }, 0, "hi"]);
});

test("AMF0: truncated, deep and endless values are refused", () => {
  const whole = encodeAmf(["publish", { a: { b: 1 } }, [1, 2]]);
  const ends = [9, 12, 20, 26].map((end) => whole.subarray(0, end));
  const deep = concatBytes([...Array.from({ length: 20 }, () => Uint8Array.of(3, 0, 1, 0x61))]);
  const many = concatBytes([Uint8Array.of(10, 0xff, 0xff, 0xff, 0xff), new Uint8Array(20_000).fill(5)]);
  for (const bytes of [...ends, deep, many, Uint8Array.of(7)])
    assert.throws(() => decodeAmf(bytes), DecodeError);
});

test("FLV tags: H.264, HEVC with either header, AAC, MP3; other codecs by name", () => {
  const video = (...bytes: number[]) => parseFlvVideo(Uint8Array.from(bytes));
  const fourcc = [...new TextEncoder().encode("hvc1")];
  const data = Uint8Array.of(9);
  assert.deepEqual(video(0x27, 1, 0xff, 0xff, 0xd8, 9), {
    ...{ kind: "frame", codec: "h264", data, isKey: false, offsetMs: -40 },
  });
  assert.deepEqual(video(0x1c, 1, 0, 0, 80, 9), {
    ...{ kind: "frame", codec: "hevc", data, isKey: true, offsetMs: 80 },
  });
  assert.deepEqual(video(0x90, ...fourcc, 9), { kind: "config", codec: "hevc", config: data });
  assert.deepEqual(video(0x91, ...fourcc, 0, 0, 40, 9), {
    ...{ kind: "frame", codec: "hevc", data, isKey: true, offsetMs: 40 },
  });
  assert.deepEqual(video(0xa3, ...fourcc, 9), {
    ...{ kind: "frame", codec: "hevc", data, isKey: false, offsetMs: 0 },
  });
  assert.equal(video(0x27, 2, 0, 0, 0), undefined);
  assert.throws(() => video(0x90, ...new TextEncoder().encode("av01"), 1), /unsupported video codec: av01/);
  const audio = (...bytes: number[]) => parseFlvAudio(Uint8Array.from(bytes));
  assert.deepEqual(audio(0xaf, 0, 9), { kind: "config", codec: "aac", config: data });
  assert.deepEqual(audio(0xaf, 1, 9), { kind: "frame", codec: "aac", data, isKey: true, offsetMs: 0 });
  assert.deepEqual(audio(0x2f, 9), { kind: "frame", codec: "mp3", data, isKey: true, offsetMs: 0 });
  assert.throws(() => audio(0xb2, 1), /unsupported audio codec: Speex/);
});
