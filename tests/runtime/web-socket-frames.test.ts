import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBelow } from "../../src/base/random.ts";
import { closeFrame, FrameReader, pongFrame, textFrame } from "../../src/runtime/web-socket-frames.ts";
import { seededRandom } from "../seeded-random.ts";
import { masked } from "./masked-frame.ts";

const TEXT = 0x81;
const text = (text: string) => ({ kind: "text", text });
const close = (code: number) => [{ kind: "close", code }];

test("FrameReader.read: a message, whole or byte by byte, with a short and a longer length", () => {
  for (const message of ["", "hello", "ü".repeat(100), "x".repeat(60_000)]) {
    const frame = masked(TEXT, message);
    assert.deepEqual(new FrameReader().read(frame), [text(message)]);
    if (frame.length > 1000) continue;
    const reader = new FrameReader();
    assert.deepEqual(
      [...frame].flatMap((byte) => reader.read(Uint8Array.of(byte))),
      [text(message)],
    );
  }
});

test("FrameReader.read: several frames at once, a message in parts, a ping between them", () => {
  const bytes = [
    masked(0x01, "a"),
    masked(0x89, "?"),
    masked(0x00, "b"),
    masked(0x80, "c"),
    masked(TEXT, "d"),
  ];
  assert.deepEqual(new FrameReader().read(Uint8Array.from(bytes.flatMap((frame) => [...frame]))), [
    { kind: "ping", bytes: new TextEncoder().encode("?") },
    text("abc"),
    text("d"),
  ]);
});

test("FrameReader.read: a protocol error is a close with its code and the last event", () => {
  const cases: [Uint8Array, number][] = [
    [masked(0x88, ""), 1000],
    [textFrame("not masked"), 1002],
    [masked(0xc1, "compressed"), 1002],
    [masked(0x80, "no beginning"), 1002],
    [masked(0x83, "unknown"), 1002],
    [masked(0x09, "a ping in parts"), 1002],
    [masked(0x89, "x".repeat(126)), 1002],
    [masked(0x82, "binary"), 1003],
    [masked(TEXT, Uint8Array.of(0xff)), 1007],
    [Uint8Array.of(TEXT, 0xff, 0, 0, 0, 1, 0, 0, 0, 0), 1009],
  ];
  for (const [bytes, code] of cases) {
    const reader = new FrameReader();
    assert.deepEqual(reader.read(bytes), close(code));
    assert.deepEqual(reader.read(masked(TEXT, "more")), []);
  }
});

test("FrameReader.read: limits the fragments of a message together, including empty ones", () => {
  const reader = new FrameReader();
  reader.read(masked(0x01, "x".repeat(40_000)));
  assert.deepEqual(reader.read(masked(0x00, "x".repeat(40_000))), close(1009));
  const empty = new FrameReader();
  empty.read(masked(0x01, ""));
  let events = 0;
  for (let i = 0; i < 70_000 && events === 0; i++) events = empty.read(masked(0x00, "")).length;
  assert.equal(events, 1);
});

test("textFrame, pongFrame, closeFrame: examples of RFC 6455 5.7", () => {
  assert.deepEqual([...textFrame("Hello")], [0x81, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
  assert.deepEqual([...textFrame("x".repeat(256)).subarray(0, 4)], [0x81, 126, 1, 0]);
  assert.deepEqual([...pongFrame(Uint8Array.of(7))], [0x8a, 1, 7]);
  assert.deepEqual([...closeFrame(1000)], [0x88, 2, 3, 232]);
  assert.throws(() => textFrame("x".repeat(65_536)), RangeError);
});

test("FrameReader.read: frames from a server must not be masked", () => {
  for (const message of ["", "hello", "x".repeat(60_000)])
    assert.deepEqual(new FrameReader("server").read(textFrame(message)), [text(message)]);
  assert.deepEqual(new FrameReader("server").read(masked(TEXT, "hello")), close(1002));
  assert.deepEqual(new FrameReader().read(textFrame("hello")), close(1002));
});

test("textFrame, pongFrame, closeFrame: a server reads masked frames", () => {
  const mask = Uint8Array.of(1, 2, 3, 4);
  assert.deepEqual(new FrameReader().read(textFrame("x".repeat(300), mask)), [text("x".repeat(300))]);
  assert.deepEqual(new FrameReader().read(pongFrame(Uint8Array.of(7), mask)), []);
  assert.deepEqual(new FrameReader().read(closeFrame(1000, mask)), close(1000));
});

test("FrameReader.read: ignores everything after the close", () => {
  const reader = new FrameReader();
  assert.deepEqual(reader.read(masked(0x88, "")), close(1000));
  for (let i = 0; i < 50; i++) assert.deepEqual(reader.read(masked(TEXT, "x".repeat(60_000))), []);
});

test("FrameReader.read: chunk boundaries do not matter", () => {
  const seed = 11;
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  const messages = Array.from({ length: 60 }, () => "x".repeat(randomBelow(random, 5000)));
  const stream = Uint8Array.from(messages.flatMap((message) => [...masked(TEXT, message)]));
  const reader = new FrameReader();
  const events = [];
  for (let at = 0; at < stream.length; ) {
    const end = at + 1 + randomBelow(random, 3000);
    events.push(...reader.read(stream.subarray(at, end)));
    at = end;
  }
  assert.deepEqual(events, messages.map(text));
});
