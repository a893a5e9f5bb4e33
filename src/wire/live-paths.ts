import { readU16, writeU16 } from "../base/bytes.ts";
import { checkMask, expectAtLeast, expectBytes, LIVE_KIND, liveFault, stripesIn } from "./live-kinds.ts";
import { MAX_ANCESTORS } from "./live-limits.ts";

/** Where a stripe comes from, as its sender sees it. */
export interface StripePath {
  readonly stripe: number;
  /** Hops to the source: 0 for the source itself; 255 where the stripe does not come. */
  readonly depth: number;
  /** Digests of those it passed, nearest first, at most 15: whoever finds itself there must not subscribe. */
  readonly ancestors: readonly number[];
}

/** The paths of those stripes whose path has changed (PATHS). */
export interface PathsMessage {
  readonly kind: "paths";
  /** By stripe, ascending. */
  readonly paths: readonly StripePath[];
}

/** The payload of a PATHS. */
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

/** Reads a PATHS. Throws `DecodeError`. */
export function decodePaths(bytes: Uint8Array, stripeCount: number): PathsMessage {
  expectAtLeast(bytes, 4);
  const mask = checkMask(readU16(bytes, 2), bytes, 2, stripeCount);
  const paths: StripePath[] = [];
  let at = 4;
  for (let stripe = 0; stripe < stripeCount; stripe++) {
    if ((mask & (1 << stripe)) === 0) continue;
    // What is still to come takes two bytes a stripe at least.
    expectAtLeast(bytes, at + 2 * (stripesIn(mask) - paths.length));
    const depth = bytes[at]!;
    const count = bytes[at + 1]!;
    if (count > MAX_ANCESTORS)
      throw liveFault(LIVE_KIND.paths, at + 1, `${count} ancestors of ${MAX_ANCESTORS}`);
    expectAtLeast(bytes, at + 2 + 2 * count);
    const place = at + 2;
    paths.push({
      stripe,
      depth,
      ancestors: Array.from({ length: count }, (_, i) => readU16(bytes, place + 2 * i)),
    });
    at = place + 2 * count;
  }
  expectBytes(bytes, at);
  return { kind: "paths", paths };
}

/** How a peer calls itself in paths: two bytes of the hash of its peer id. Few enough to repeat now and then, which
 * costs a possible parent and nothing else. */
export function pathDigest(peerIdHash: Uint8Array): number {
  return readU16(peerIdHash, 0);
}
