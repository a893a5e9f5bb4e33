import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, readU48, writeU48 } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { infohashOf } from "../../src/base/ids.ts";
import { decodeChunk, writeChunkHead } from "../../src/wire/live/chunk-message.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../src/wire/live/message.ts";
import { LIVE_KIND } from "../../src/wire/live/message-kind.ts";
import { encodePaths, pathDigest } from "../../src/wire/live/paths.ts";
import { homeStripeOf, livePeerDict, readLivePeer } from "../../src/wire/live/peer-info.ts";
import { decodeStat, encodeStat, isSignedStat } from "../../src/wire/live/stat.ts";
import { emptyWindow, readWindow, windowBytes, windowHas, writeWindow } from "../../src/wire/live/window.ts";
import { PeerMessageDecoder, type PeerMessageHandler } from "../../src/wire/peer/peer-message.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";
import { INFOHASH, KEY, type LiveMessage, MESSAGES, VERIFY } from "./live-vectors.ts";

const bytesOf = (name: string) => MESSAGES.find((message) => message.name === name)!.bytes.slice();
const refused = (message: RegExp) => (error: unknown) =>
  error instanceof DecodeError && message.test(error.message);

/** Returns the example message `name` with some bytes changed. */
function changed(name: string, at: number, ...values: number[]): Uint8Array {
  const bytes = bytesOf(name);
  bytes.set(values, at);
  return bytes;
}

test("decodeLiveMessage accepts each message only at its exact length", () => {
  for (const { name, bytes } of MESSAGES) {
    // A chunk has any length.
    const isFree = name.startsWith("CHUNK");
    for (const wrong of [
      bytes.subarray(0, -1),
      concatBytes([bytes, new Uint8Array(1)]),
      bytes.subarray(0, 1),
    ]) {
      if (isFree && wrong.length > 1) continue;
      assert.throws(() => decodeLiveMessage(wrong, 4), DecodeError, `${name}, ${wrong.length} bytes`);
    }
  }
  assert.throws(() => decodeLiveMessage(new Uint8Array(0), 4), refused(/empty/));
});

test("decodeLiveMessage ignores unknown kinds", () => {
  for (const kind of [17, 100, 255])
    assert.equal(decodeLiveMessage(Uint8Array.of(kind, 1, 2, 3), 4), undefined);
});

test("decodeLiveMessage ignores reserved bytes and bits", () => {
  const reserved: readonly (readonly [string, number, number])[] = [
    ["HELLO", 1, 0xff],
    ["HEADER", 1, 0xfe],
    ["CHUNK", 1, 0xfd],
    ["SUB", 1, 0xff],
    ["SUBOK", 1, 0xff],
    ["SUBNO", 7, 0xff],
    ["WIN", 1, 0xff],
    ["PATHS", 1, 0xff],
    ["REQ", 1, 0xff],
    ["REQ", 15, 0xff],
    ["CANCEL", 1, 0xff],
    ["CANCEL", 15, 0xff],
    ["HREQ", 1, 0xff],
    ["PING", 1, 0xff],
    ["STAT", 1, 0xff],
    ["BYE", 3, 0xff],
  ];
  for (const [name, at, value] of reserved) {
    const { message } = MESSAGES.find((example) => example.name === name)!;
    assert.deepEqual(decodeLiveMessage(changed(name, at, value), 4), message, name);
  }
});

test("decodeLiveMessage treats unknown reasons as the first one", () => {
  const reasonOf = (bytes: Uint8Array) => (decodeLiveMessage(bytes, 4) as { reason?: string }).reason;
  assert.equal(reasonOf(changed("SUBNO", 1, 200)), "full");
  assert.equal(reasonOf(changed("UNSUB", 1, 200)), "moved");
  assert.equal(reasonOf(changed("BYE", 1, 200)), "leaving");
  const lacking = decodeLiveMessage(changed("NAK", 15, 200), 4);
  assert.equal(lacking?.kind === "lacking" && lacking.chunks[0]!.reason, "not-here");
});

const BAD: readonly (readonly [string, Uint8Array, RegExp])[] = [
  ["CHUNK with a stripe out of range", changed("CHUNK", 2, 4), /below 4, not 4/],
  ["CHUNK without bytes", bytesOf("CHUNK").subarray(0, 14), /at least 15 bytes/],
  ["short CHUNK that is not the last", changed("CHUNK", 1, 0), /16384 bytes, not 376/],
  [
    "CHUNK beyond 16 KiB",
    concatBytes([changed("CHUNK", 1, 1), new Uint8Array(16_384)]),
    /16384 bytes, not 16760/,
  ],
  ["CHUNK beyond the largest piece", changed("CHUNK", 3, 33), /below 33, not 33/],
  ["SUB without stripes", changed("SUB", 2, 0, 0), /stripe set 0 for 4/],
  ["SUB with a stripe out of range", changed("SUB", 2, 0, 0x11), /stripe set 10001 for 4/],
  ["SUB with a long backlog", changed("SUB", 14, 0, 33), /at most 32, not 33/],
  ["SUB without a bitmap", bytesOf("SUB").subarray(0, -4), /expected 24 bytes/],
  ["SUBOK without stripes", changed("SUBOK", 2, 0, 0), /stripe set 0/],
  ["SUBNO with many candidates", changed("SUBNO", 6, 9), /at most 8 candidates, not 9/],
  ["SUBNO with missing candidates", changed("SUBNO", 6, 3), /expected 74 bytes/],
  ["UNSUB with a stripe out of range", changed("UNSUB", 2, 0x80, 0), /for 4 stripes/],
  ["WIN with a wrong stripe count", new Uint8Array(windowBytes(16)).fill(7), /expected 36 bytes/],
  ["PATHS without stripes", changed("PATHS", 2, 0, 0), /stripe set 0/],
  ["PATHS with 16 ancestors", changed("PATHS", 5, 16), /at most 15 ancestors, not 16/],
  ["truncated PATHS", changed("PATHS", 5, 15), /at least \d+ bytes/],
  ["REQ without chunks", changed("REQ", 2, 0, 0), /1 to 128 entries, not 0/],
  ["REQ with too many chunks", changed("REQ", 2, 0, 129), /entries, not 129/],
  ["REQ with a stripe out of range", changed("REQ", 14, 4), /below 4, not 4/],
  ["REQ with the header stripe", changed("REQ", 14, 255), /below 4, not 255/],
  ["CANCEL with a stripe out of range", changed("CANCEL", 14, 9), /below 4, not 9/],
  ["NAK with too many holders", changed("NAK", 1, 9), /at most 8 holders, not 9/],
  ["NAK with a stripe out of range", changed("NAK", 14, 9), /below 4, not 9/],
  ["HREQ for too many headers", changed("HREQ", 2, 1, 1), /entries, not 257/],
  ["HREQ with step 0", changed("HREQ", 14, 0, 0), /step of at least 1/],
  ["STAT with too many bytes", changed("STAT", 2, 4, 1), /at most 1024 bytes, not 1025/],
  ["STAT without a dictionary", changed("STAT", 20, 0x6c), /expected a dictionary/],
  ["BYE with many candidates", changed("BYE", 2, 9), /at most 8 candidates, not 9/],
  ["HELLO with half a header", changed("HELLO", 2, 0, 100), /expected 104 bytes/],
];

test("decodeLiveMessage refuses values out of range and states the reason", () => {
  for (const [what, bytes, message] of BAD) {
    assert.throws(() => decodeLiveMessage(bytes, 4), refused(message), what);
  }
});

test("encodeLiveMessage and decodeLiveMessage round trip at the largest sizes", () => {
  const candidate = { address: { host: "::1", port: 1 }, freeSlots: 1, lagMs: 2 };
  const all = 0xffff;
  const largest: readonly LiveMessage[] = [
    { kind: "hello", header: new Uint8Array(444).fill(1) },
    {
      kind: "chunk",
      epoch: 2 ** 32 - 1,
      seq: 2 ** 48 - 1,
      stripe: 15,
      fragment: 32,
      isLast: false,
      isLate: true,
      bytes: new Uint8Array(16_384).fill(5),
    },
    {
      kind: "subscribe",
      stripes: all,
      epoch: 1,
      startSeq: 2 ** 48 - 1,
      backfillPieces: 32,
      have: Array(16).fill(2 ** 32 - 1),
      isDesperate: false,
    },
    { kind: "refused", stripes: all, reason: "loop", retryMs: 65_535, candidates: Array(8).fill(candidate) },
    {
      kind: "paths",
      paths: Array.from({ length: 16 }, (_, stripe) => ({
        stripe,
        depth: 20,
        ancestors: Array(15).fill(0xffff),
      })),
    },
    {
      kind: "request",
      epoch: 0,
      chunks: Array(128).fill({ seq: 2 ** 48 - 1, stripe: 15, withinMs: 65_535 }),
    },
    { kind: "cancel", epoch: 0, chunks: Array(128).fill({ seq: 0, stripe: 15 }) },
    {
      kind: "lacking",
      epoch: 0,
      chunks: Array(128).fill({ seq: 2 ** 40, stripe: 255, reason: "busy" }),
      holders: Array(8).fill({ host: "2001:db8::1", port: 65_535 }),
    },
    { kind: "headerRequest", epoch: 0, firstSeq: 0, count: 256, step: 65_535, onlyRandomAccess: false },
    { kind: "bye", reason: "ended", candidates: Array(8).fill(candidate) },
  ];
  for (const message of largest) {
    assert.ok(message.kind !== "stat");
    const bytes = encodeLiveMessage(message);
    assert.deepEqual(decodeLiveMessage(bytes, 16), message);
    // An extended message may have 1 MiB; live messages stay far below, so that none delays the next.
    assert.ok(bytes.length <= 14 + 16_384, `${message.kind} of ${bytes.length} bytes`);
  }
});

test("candidates and holders with port 0 are skipped", () => {
  const nobody = { host: "192.0.2.1", port: 0 };
  const candidates = [{ address: nobody, freeSlots: 1, lagMs: 1 }];
  assert.deepEqual(decodeLiveMessage(encodeLiveMessage({ kind: "bye", reason: "leaving", candidates }), 4), {
    kind: "bye",
    reason: "leaving",
    candidates: [],
  });
});

test("windowHas checks runs, chunks after a gap, and pieces before the base", () => {
  const window = { ...emptyWindow(4), oldestSeq: 90, baseSeq: 100 };
  window.runs[1] = 3;
  window.beyond[1] = 0b1000_0000_0000_0101;
  const has = (stripe: number) =>
    Array.from({ length: 40 }, (_, i) => 85 + i).filter((seq) => windowHas(window, seq, stripe));
  const before = [90, 91, 92, 93, 94, 95, 96, 97, 98, 99];
  assert.deepEqual(has(0), before);
  assert.deepEqual(has(1), [...before, 100, 101, 102, 104, 106, 119]);
});

test("writeWindow and readWindow reuse their arguments, and clamp large numbers", () => {
  const bytes = new Uint8Array(windowBytes(16));
  assert.equal(bytes.length, 72);
  const window = emptyWindow(16);
  for (const lagMs of [5, 1e9]) {
    const written = { ...emptyWindow(16), epoch: 7, oldestSeq: 1, baseSeq: 2 ** 48 - 1, lagMs, queueMs: 1e9 };
    written.runs.fill(255);
    written.beyond.fill(0xffff);
    writeWindow(bytes, written);
    readWindow(bytes, window);
    assert.deepEqual(window, { ...written, lagMs: Math.min(lagMs, 65_535), queueMs: 65_535 });
  }
  const before = structuredClone(window);
  assert.throws(() => readWindow(bytes.subarray(1), window), DecodeError);
  assert.deepEqual(window, before);
  assert.equal(decodeLiveMessage(bytes, 16, window)?.kind, "window");
});

test("readWindow never returns a base before the oldest piece", () => {
  const bytes = new Uint8Array(windowBytes(4));
  writeWindow(bytes, { ...emptyWindow(4), oldestSeq: 50, baseSeq: 10 });
  const window = emptyWindow(4);
  readWindow(bytes, window);
  assert.equal(window.baseSeq, 50);
});

test("writeChunkHead and PeerMessageWriter write a chunk without joining it first", () => {
  const { message, bytes } = MESSAGES.find(({ name }) => name === "CHUNK")!;
  assert.ok(message.kind === "chunk");
  const head = new Uint8Array(14);
  writeChunkHead(head, message);
  const writer = new PeerMessageWriter();
  writer.extended(7, head, message.bytes);
  const got: { id: number; payload: Uint8Array }[] = [];
  const ignore = () => undefined;
  const handler = new Proxy({} as PeerMessageHandler, {
    get: (_, name) =>
      name === "extended"
        ? (id: number, payload: Uint8Array) => got.push({ id, payload: payload.slice() })
        : ignore,
  });
  const limits = { maxBitfieldBytes: 0, maxExtendedBytes: 20_000, maxBlockBytes: 0 };
  new PeerMessageDecoder(handler, limits).feed(writer.take()!);
  assert.deepEqual(got, [{ id: 7, payload: bytes }]);
  assert.deepEqual(decodeChunk(got[0]!.payload, 4), message);
});

test("isSignedStat refuses every changed byte and another stream", () => {
  const bytes = bytesOf("STAT");
  assert.ok(isSignedStat(bytes, INFOHASH, VERIFY));
  assert.equal(isSignedStat(bytes, infohashOf(new Uint8Array(20)), VERIFY), false);
  for (let at = 0; at < bytes.length; at++) {
    const bad = bytes.slice();
    bad[at]! ^= 0x10;
    assert.equal(isSignedStat(bad, INFOHASH, VERIFY), false, `byte ${at}`);
  }
});

test("encodeStat and decodeStat round trip; encodeStat refuses large dictionaries", () => {
  const base = { epoch: 1, number: 2, timestampMs: 3, isEnd: true, relays: [], trackers: [] };
  assert.deepEqual(decodeStat(encodeStat(base, INFOHASH, KEY.sign)), { kind: "stat", ...base });
  const relays = Array(32).fill({ host: "192.0.2.1", port: 9 });
  assert.equal(decodeStat(encodeStat({ ...base, relays }, INFOHASH, KEY.sign)).relays.length, 32);
  const trackers = Array.from({ length: 40 }, (_, i) => `http://${i}.tracker.example/announce`);
  assert.throws(() => encodeStat({ ...base, trackers }, INFOHASH, KEY.sign), DecodeError);
});

test("readLivePeer treats values out of range as 0, and refuses other versions", () => {
  const peer = {
    role: "source",
    uploadBytesPerSecond: 1_048_576,
    challenge: new Uint8Array(16).fill(3),
  } as const;
  const dict = livePeerDict(peer) as ReadonlyMap<string, number | Uint8Array>;
  const changedPeer = (key: string, value: number | Uint8Array) =>
    readLivePeer(new Map([...dict, [key, value]]));
  assert.deepEqual(readLivePeer(dict), peer);
  assert.deepEqual(changedPeer("role", 9), { ...peer, role: "viewer" });
  const { challenge: _, ...plain } = peer;
  assert.deepEqual(changedPeer("n", new Uint8Array(15)), plain);
  assert.deepEqual(changedPeer("up", -1), { ...peer, uploadBytesPerSecond: 0 });
  assert.equal(changedPeer("v", 2), undefined);
  assert.equal(readLivePeer(undefined), undefined);
});

test("pathDigest and homeStripeOf derive from the hash of the peer id; encodePaths writes ancestors as two bytes", () => {
  assert.deepEqual(
    [4, 8, 16].map((count) => homeStripeOf(Uint8Array.of(0, 0, 0x2d), count)),
    [1, 5, 13],
  );
  assert.equal(pathDigest(Uint8Array.of(0x12, 0x34, 0x56)), 0x1234);
  assert.deepEqual(
    [...encodePaths([{ stripe: 1, depth: 0, ancestors: [] }])],
    [LIVE_KIND.paths, 0, 0, 2, 0, 0],
  );
});

test("readU48 and writeU48 hold every number below 2^48", () => {
  const bytes = new Uint8Array(8);
  for (const value of [0, 1, 0xffff_ffff, 0x1_0000_0000, 2 ** 48 - 1, 14_320_000_000]) {
    writeU48(bytes, 1, value);
    assert.equal(readU48(bytes, 1), value);
  }
});
