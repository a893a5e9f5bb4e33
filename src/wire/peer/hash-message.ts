import { readU32, writeU32 } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { DIGEST_BYTES, levelsFor } from "../../base/merkle.ts";
import { MESSAGE } from "./peer-message.ts";

/** A range of hashes in one layer of the Merkle tree of a file, and the extent of its proof (BEP 52). */
export interface HashRange {
  /** Root of the tree, 32 bytes; identifies the file. */
  readonly root: Uint8Array;
  /** Layer of the hashes; 0 is the leaves. */
  readonly baseLayer: number;
  /** Index of the first hash in its layer. */
  readonly index: number;
  /** Number of hashes. */
  readonly length: number;
  /** Number of layers above the base layer that the proof covers, including those that follow from the hashes themselves. */
  readonly proofLayers: number;
}

/** Hash messages: each request is answered by `hashes` or `reject` (BEP 52). */
type HashMessage =
  | { readonly kind: "request" | "reject"; readonly range: HashRange }
  /** `hashes`: the hashes of the base layer, then one sibling hash per proof layer, lowest first; a view of the input. */
  | { readonly kind: "hashes"; readonly range: HashRange; readonly hashes: Uint8Array };

/** Longest range that this program requests or serves (BEP 52: requests should not be longer). */
export const MAX_HASHES = 512;

const FORMAT = "hash message";
const RANGE_BYTES = DIGEST_BYTES + 16;
const KINDS = new Map([
  [MESSAGE.hashRequest, "request"],
  [MESSAGE.hashes, "hashes"],
  [MESSAGE.hashReject, "reject"],
] as const);

/** Returns the number of proof hashes for a range; layers that follow from the hashes themselves need none. */
export function proofHashCount({ length, proofLayers }: Pick<HashRange, "length" | "proofLayers">): number {
  return Math.max(0, proofLayers + 1 - levelsFor(length));
}

/** Encodes the range that follows the id of a hash message; in a `hashes` message the hashes follow. */
export function encodeHashRange(range: HashRange): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(RANGE_BYTES);
  bytes.set(range.root);
  const numbers = [range.baseLayer, range.index, range.length, range.proofLayers];
  for (const [i, number] of numbers.entries()) writeU32(bytes, DIGEST_BYTES + 4 * i, number);
  return bytes;
}

/** Decodes the payload of message 21, 22 or 23 (BEP 52). The range is not checked against any file, but the number of hashes
 * matches it. The root is a copy. Throws `DecodeError`. */
export function decodeHashMessage(id: number, payload: Uint8Array): HashMessage {
  const kind = KINDS.get(id as typeof MESSAGE.hashRequest);
  if (!kind) throw new DecodeError(FORMAT, 0, `expected message 21, 22 or 23, not ${id}`);
  if (payload.length < RANGE_BYTES)
    throw new DecodeError(FORMAT, payload.length, `expected at least ${RANGE_BYTES} bytes`);
  const [baseLayer, index, length, proofLayers] = [0, 4, 8, 12].map((at) =>
    readU32(payload, DIGEST_BYTES + at),
  ) as [number, number, number, number];
  const range: HashRange = { root: payload.slice(0, DIGEST_BYTES), baseLayer, index, length, proofLayers };
  const hashes = payload.subarray(RANGE_BYTES);
  const count = kind === "hashes" ? length + proofHashCount(range) : 0;
  if (hashes.length !== count * DIGEST_BYTES)
    throw new DecodeError(FORMAT, RANGE_BYTES, `expected ${count} hashes, got ${hashes.length} bytes`);
  return kind === "hashes" ? { kind, range, hashes } : { kind, range };
}
