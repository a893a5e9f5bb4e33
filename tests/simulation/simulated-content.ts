import { createHash } from "node:crypto";
import { concatBytes, equalBytes, latin1Bytes } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import type { SwarmLayout } from "../../src/protocol/swarm/contract.ts";
import { seededRandom } from "../seeded-random.ts";

export function sha1(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha1").update(bytes).digest());
}

/** Content of a swarm: its bytes, format and stand-in metadata (the layout is found by comparing the
 * bytes). */
export interface SimulatedContent {
  readonly bytes: Uint8Array;
  readonly layout: SwarmLayout;
  readonly infoBytes: Uint8Array;
  readonly infohash: Infohash;
  readInfo(infoBytes: Uint8Array): SwarmLayout;
}

/** Makes content of `length` pseudo-random bytes. */
export function makeContent(
  length: number,
  pieceLength: number,
  seed: number,
  isPrivate = false,
): SimulatedContent {
  const bytes = new Uint8Array(length);
  const random = seededRandom(seed);
  const words = new Uint32Array(bytes.buffer, 0, length >> 2);
  for (let i = 0; i < words.length; i++) words[i] = random() * 0x1_0000_0000;
  const pieceCount = Math.ceil(length / pieceLength);
  const hashes: Uint8Array[] = [];
  for (let piece = 0; piece < pieceCount; piece++) {
    hashes.push(sha1(bytes.subarray(piece * pieceLength, (piece + 1) * pieceLength)));
  }
  const pieceHashes = concatBytes(hashes);
  const layout: SwarmLayout = { pieceLength, pieceCount, length, pieceHashes, isPrivate };
  // Several 16 KiB pieces of metadata, like content with many pieces.
  const infoBytes = concatBytes([
    latin1Bytes(`${length}:${pieceLength}:`),
    pieceHashes,
    bytes.subarray(0, 50_000),
  ]);
  return {
    bytes,
    layout,
    infoBytes,
    infohash: infohashOf(sha1(infoBytes)),
    readInfo(candidate) {
      if (!equalBytes(candidate, infoBytes))
        throw new DecodeError("metainfo", 0, "not the simulated metadata");
      return layout;
    },
  };
}
