import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../../src/base/errors.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";

const LIMITS = { maxBitfieldBytes: 8, maxExtendedBytes: 64, maxBlockBytes: 64 };

/** Records every message as text. */
class Recorder implements PeerMessageHandler {
  readonly heard: string[] = [];
  #place: Uint8Array | undefined;
  isSkipping = false;

  keepAlive = () => this.#note("keep-alive");
  choke = () => this.#note("choke");
  unchoke = () => this.#note("unchoke");
  interested = () => this.#note("interested");
  notInterested = () => this.#note("not interested");
  have = (piece: number) => this.#note(`have ${piece}`);
  bitfield = (bits: Uint8Array) => this.#note(`bitfield ${bits.join(",")}`);
  request = (...of: number[]) => this.#note(`request ${of.join(",")}`);
  cancel = (...of: number[]) => this.#note(`cancel ${of.join(",")}`);
  reject = (...of: number[]) => this.#note(`reject ${of.join(",")}`);
  port = (port: number) => this.#note(`port ${port}`);
  suggest = (piece: number) => this.#note(`suggest ${piece}`);
  haveAll = () => this.#note("have all");
  haveNone = () => this.#note("have none");
  allowedFast = (piece: number) => this.#note(`allowed fast ${piece}`);
  extended = (id: number, payload: Uint8Array) => this.#note(`extended ${id} ${payload.join(",")}`);
  hash = (id: number, payload: Uint8Array) => this.#note(`hash ${id} ${payload.join(",")}`);

  block(_piece: number, _begin: number, length: number): Uint8Array | undefined {
    this.#place = this.isSkipping ? undefined : new Uint8Array(length);
    return this.#place;
  }

  blockDone(piece: number, begin: number, length: number): void {
    this.#note(`block ${piece},${begin},${length} ${this.#place?.join(",") ?? "skipped"}`);
  }

  #note(text: string): void {
    this.heard.push(text);
  }
}

const EVERYTHING: [text: string, write: (writer: PeerMessageWriter) => void][] = [
  ["keep-alive", (writer) => writer.keepAlive()],
  ["choke", (writer) => writer.choke()],
  ["unchoke", (writer) => writer.unchoke()],
  ["interested", (writer) => writer.interested()],
  ["not interested", (writer) => writer.notInterested()],
  ["have 70000", (writer) => writer.have(70_000)],
  ["bitfield 255,128", (writer) => writer.bitfield(Uint8Array.of(255, 128))],
  ["bitfield ", (writer) => writer.bitfield(new Uint8Array(0))],
  ["request 1,16384,16384", (writer) => writer.request(1, 16_384, 16_384)],
  ["cancel 4294967295,2,3", (writer) => writer.cancel(0xffffffff, 2, 3)],
  ["reject 1,2,3", (writer) => writer.reject(1, 2, 3)],
  ["port 6881", (writer) => writer.port(6881)],
  ["suggest 5", (writer) => writer.suggest(5)],
  ["have all", (writer) => writer.haveAll()],
  ["have none", (writer) => writer.haveNone()],
  ["allowed fast 9", (writer) => writer.allowedFast(9)],
  ["extended 3 1,2,3", (writer) => writer.extended(3, Uint8Array.of(1, 2, 3))],
  ["extended 0 ", (writer) => writer.extended(0, new Uint8Array(0))],
  ["hash 21 9,8,7", (writer) => writer.hash(21, Uint8Array.of(9, 8, 7))],
  ["hash 22 9,8,7,1,2", (writer) => writer.hash(22, Uint8Array.of(9, 8, 7), Uint8Array.of(1, 2))],
  ["hash 23 ", (writer) => writer.hash(23, new Uint8Array(0))],
  ["block 7,32,5 1,2,3,4,5", (writer) => writer.block(7, 32, Uint8Array.of(1, 2, 3, 4, 5))],
  ["block 7,32,0 ", (writer) => writer.block(7, 32, new Uint8Array(0))],
];

function written(): Uint8Array {
  const writer = new PeerMessageWriter();
  for (const [, write] of EVERYTHING) write(writer);
  return writer.take()!;
}

test("PeerMessageDecoder reads each message of PeerMessageWriter", () => {
  for (const [text, write] of EVERYTHING) {
    const recorder = new Recorder();
    const writer = new PeerMessageWriter();
    write(writer);
    new PeerMessageDecoder(recorder, LIMITS).feed(writer.take()!);
    assert.deepEqual(recorder.heard, [text]);
  }
});

test("PeerMessageDecoder gives the same result for all split points, and byte by byte", () => {
  const bytes = written();
  const expected = EVERYTHING.map(([text]) => text);
  for (let cut = 0; cut <= bytes.length; cut++) {
    const recorder = new Recorder();
    const decoder = new PeerMessageDecoder(recorder, LIMITS);
    decoder.feed(bytes.subarray(0, cut));
    decoder.feed(bytes.subarray(cut));
    assert.deepEqual(recorder.heard, expected, `cut at ${cut}`);
  }
  for (const step of [1, 2, 3, 7, 16, 18]) {
    const recorder = new Recorder();
    const decoder = new PeerMessageDecoder(recorder, LIMITS);
    // A copy each time, because read buffers are reused.
    for (let at = 0; at < bytes.length; at += step) decoder.feed(bytes.slice(at, at + step));
    assert.deepEqual(recorder.heard, expected, `steps of ${step}`);
  }
});

test("PeerMessageDecoder skips blocks without a buffer, unknown messages, and blocks discarded half-way", () => {
  const recorder = new Recorder();
  recorder.isSkipping = true;
  const decoder = new PeerMessageDecoder(recorder, LIMITS);
  const writer = new PeerMessageWriter();
  writer.block(1, 0, Uint8Array.of(1, 2, 3));
  writer.raw(Uint8Array.of(0, 0, 0, 3, 77, 1, 2));
  writer.choke();
  decoder.feed(writer.take()!);
  assert.deepEqual(recorder.heard, ["block 1,0,3 skipped", "choke"]);
  recorder.isSkipping = false;
  writer.block(1, 0, Uint8Array.of(1, 2, 3, 4));
  const bytes = writer.take()!;
  decoder.feed(bytes.subarray(0, 15));
  decoder.skipBlock();
  decoder.feed(bytes.subarray(15));
  assert.equal(recorder.heard.at(-1), "block 1,0,4 1,2,0,0");
});

test("PeerMessageDecoder stops after stop()", () => {
  const recorder = new Recorder();
  const decoder = new PeerMessageDecoder(recorder, LIMITS);
  recorder.unchoke = () => decoder.stop();
  decoder.feed(written());
  assert.deepEqual(recorder.heard, ["keep-alive", "choke"]);
});

const HOSTILE: [name: string, bytes: number[]][] = [
  ["a block of 4 GiB", [0xff, 0xff, 0xff, 0xff, 7]],
  ["a block one byte over the limit", [0, 0, 0, 74, 7]],
  ["a block without room for its header", [0, 0, 0, 8, 7]],
  ["a bitfield over the limit", [0, 0, 0, 10, 5]],
  ["an extended message over the limit", [0, 0, 1, 0, 20]],
  ["an unknown message over the limit", [0, 1, 0, 0, 99]],
  ["an extended message without an id", [0, 0, 0, 1, 20]],
  ["a choke with a body", [0, 0, 0, 2, 0]],
  ["a have too short", [0, 0, 0, 4, 4]],
  ["a request too long", [0, 0, 0, 14, 6]],
];

for (const [name, bytes] of HOSTILE) {
  test(`PeerMessageDecoder refuses ${name} before its body arrives`, () => {
    const decoder = new PeerMessageDecoder(new Recorder(), LIMITS);
    assert.throws(() => decoder.feed(Uint8Array.from(bytes)), DecodeError);
  });
}

test("PeerMessageWriter batches messages into one buffer and starts a new one after take", () => {
  const writer = new PeerMessageWriter();
  for (let i = 0; i < 1_000; i++) writer.request(i, 0, 16_384);
  assert.equal(writer.length, 17_000);
  assert.equal(writer.take()!.length, 17_000);
  assert.equal(writer.take(), undefined);
  writer.choke();
  assert.deepEqual([...writer.take()!], [0, 0, 0, 1, 0]);
});
