import { readU16, writeU16 } from "../../base/bytes.ts";
import { MAX_ANCESTORS } from "./limits.ts";
import {
  checkMask,
  countStripes,
  expectAtLeast,
  expectBytes,
  LIVE_KIND,
  liveMessageError,
} from "./message-kind.ts";

/** The path of a stripe from the source to the sender. */
export interface StripePath {
  readonly stripe: number;
  /** Hops to the source: 0 for the source itself; 255 if the sender does not receive the stripe. */
  readonly depth: number;
  /** Digests of the peers on the path, nearest first, at most 15. A peer that is among them must not subscribe. */
  readonly ancestors: readonly number[];
}

/** The paths of the stripes whose path has changed (PATHS). */
export interface PathsMessage {
  readonly kind: "paths";
  /** By stripe, ascending. */
  readonly paths: readonly StripePath[];
}

/** Encodes a PATHS. */
export function encodePaths(paths: readonly StripePath[]): Uint8Array<ArrayBuffer> {
  const ancestors = paths.reduce((sum, path) => sum + path.ancestors.length, 0);
  const bytes = new Uint8Array(4 + 2 * paths.length + 2 * ancestors);
  bytes[0] = LIVE_KIND.paths;
  let mask = 0;
  let at = 4;
  for (const path of paths) {
    mask |= 1 << path.stripe;
    bytes[at++] = path.depth;
    bytes[at++] = path.ancestors.length;
    for (const ancestor of path.ancestors) {
      writeU16(bytes, at, ancestor);
      at += 2;
    }
  }
  writeU16(bytes, 2, mask);
  return bytes;
}

/** Decodes a PATHS. Throws `DecodeError`. */
export function decodePaths(bytes: Uint8Array, stripeCount: number): PathsMessage {
  expectAtLeast(bytes, 4);
  const mask = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  const paths: StripePath[] = [];
  let at = 4;
  for (let stripe = 0; stripe < stripeCount; stripe++) {
    if ((mask & (1 << stripe)) === 0) continue;
    // Each remaining stripe needs at least two bytes.
    expectAtLeast(bytes, at + 2 * (countStripes(mask) - paths.length));
    const depth = bytes[at]!;
    const count = bytes[at + 1]!;
    if (count > MAX_ANCESTORS)
      throw liveMessageError(
        LIVE_KIND.paths,
        at + 1,
        `expected at most ${MAX_ANCESTORS} ancestors, not ${count}`,
      );
    expectAtLeast(bytes, at + 2 + 2 * count);
    const listAt = at + 2;
    paths.push({
      stripe,
      depth,
      ancestors: Array.from({ length: count }, (_, i) => readU16(bytes, listAt + 2 * i)),
    });
    at = listAt + 2 * count;
  }
  expectBytes(bytes, at);
  return { kind: "paths", paths };
}

/** Returns the digest of a peer in paths: two bytes of the hash of its peer id. A collision only excludes a possible parent. */
export function pathDigest(peerIdHash: Uint8Array): number {
  return readU16(peerIdHash, 0);
}
