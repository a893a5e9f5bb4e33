// `bun tests/bench/live-wire.ts`: what reading and writing the messages of a live stream costs. Sixteen stripes at
// 8 Mbit/s bring 128 chunks and 8 headers a second, 24 neighbours 96 windows.

import { infohashOf } from "../../src/base/ids.ts";
import { ed25519Key, ed25519Verifier, sha256 } from "../../src/runtime/crypto.ts";
import { encodeBencode } from "../../src/wire/bencode-encode.ts";
import { decodeChunk, writeChunkHead } from "../../src/wire/live/chunk-message.ts";
import { decodeHeader } from "../../src/wire/live/header.ts";
import { liveInfoDict } from "../../src/wire/live/info.ts";
import { decodeLiveMessage, encodeLiveMessage } from "../../src/wire/live/message.ts";
import { isChunkOf, isSignedHeader } from "../../src/wire/live/trust.ts";
import { emptyWindow, readWindow, windowBytes, writeWindow } from "../../src/wire/live/window.ts";
import { PeerMessageWriter } from "../../src/wire/peer/peer-message-writer.ts";
import { INFO, makePieces, SEED } from "../wire/live-vectors.ts";
import { sha1 } from "../wire/make-torrent.ts";

const STRIPES = 16;
const info = { ...INFO, stripeCount: 16, maxPieceBytes: 262_144 } as const;
const infohash = infohashOf(sha1(encodeBencode(liveInfoDict(info))));
const [made] = makePieces(info, infohash, [125_020]);
const verify = ed25519Verifier(ed25519Key(SEED).publicKey);
const bytes = made!.piece.subarray(0, 7896);
const fields = { epoch: 1, seq: 2, stripe: 3, fragment: 0, isLast: true, isLate: false };
const chunk = encodeLiveMessage({ kind: "chunk", ...fields, bytes });
const window = emptyWindow(STRIPES);
const windowMessage = new Uint8Array(windowBytes(STRIPES));
writeWindow(windowMessage, window);
const head = new Uint8Array(14);
const writer = new PeerMessageWriter();
let sink = 0;

measure("CHUNK decode", 2_000_000, () => {
  sink += decodeChunk(chunk, STRIPES).bytes.length;
});
measure("CHUNK write, 7,896 B into the connection's buffer", 200_000, () => {
  writeChunkHead(head, fields);
  writer.extended(1, head, bytes);
  sink += writer.take()!.length;
});
measure("CHUNK check (SHA-256 of 7,896 B)", 50_000, () => {
  sink += Number(isChunkOf(made!.header, 0, bytes, sha256));
});
measure("WIN decode into a window", 2_000_000, () => {
  readWindow(windowMessage, window);
  sink += window.baseSeq;
});
measure("WIN decode into a new window", 1_000_000, () => {
  sink += decodeLiveMessage(windowMessage, STRIPES)!.kind.length;
});
measure("WIN write", 2_000_000, () => {
  writeWindow(windowMessage, window);
  sink += windowMessage[2]!;
});
measure("HEADER decode", 1_000_000, () => {
  sink += decodeHeader(made!.headerBytes, info).seq;
});
measure("HEADER check (Ed25519)", 5_000, () => {
  sink += Number(isSignedHeader(made!.headerBytes, infohash, verify));
});
if (!Number.isFinite(sink)) throw new Error("not a number");

function measure(name: string, count: number, run: () => void): void {
  for (let i = 0; i < count / 10; i++) run();
  const start = performance.now();
  for (let i = 0; i < count; i++) run();
  const us = ((performance.now() - start) * 1000) / count;
  console.log(
    `${name.padEnd(52)} ${us.toFixed(3).padStart(8)} µs ${Math.round(1e6 / us).toLocaleString("en")}/s`,
  );
}
