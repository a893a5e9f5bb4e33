import { readU32, writeU32 } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { DIGEST_BYTES, levelsFor } from "../base/merkle.ts";
import { MESSAGE } from "./peer-message.ts";

/** A run of hashes of one layer of a file's tree, and how far towards the root it is to be proven (BEP 52). */
export interface HashRange {
  /** The root of the file's tree, 32 bytes: which file is meant. */
  readonly root: Uint8Array;
  /** Layers above the leaves. */
  readonly baseLayer: number;
  /** The first hash, counted within its layer. */
  readonly index: number;
  /** How many hashes of that layer. */
  readonly length: number;
  /** Layers above that one of which the other half shall come along, those that follow from the hashes included. */
  readonly proofLayers: number;
}

/** The messages about hashes: every request is answered by one of the two others (BEP 52). */
export type HashMessage =
  | { readonly kind: "request" | "reject"; readonly range: HashRange }
  /** `hashes`: those of the base layer, then one of each proof layer, the lowest first; a view on the input. */
  | { readonly kind: "hashes"; readonly range: HashRange; readonly hashes: Uint8Array };

/** The longest run that is asked for, and answered (BEP 52: requests should not be longer). */
export const MAX_HASHES = 512;

const FORMAT = "hash message";
const RANGE_BYTES = DIGEST_BYTES + 16;
const KINDS = new Map([
  [MESSAGE.hashRequest, "request"],
  [MESSAGE.hashes, "hashes"],
  [MESSAGE.hashReject, "reject"],
] as const);

/** How many hashes of proof layers come with a range: the layers that follow from its own hashes bring none. */
export function proofHashes({ length, proofLayers }: Pick<HashRange, "length" | "proofLayers">): number {
  return Math.max(0, proofLayers + 1 - levelsFor(length));
}

/** What follows the id of a message about hashes; `hashes` themselves may be written behind it. */
export function encodeHashRange(range: HashRange): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(RANGE_BYTES);
  bytes.set(range.root);
  const numbers = [range.baseLayer, range.index, range.length, range.proofLayers];
  for (const [i, number] of numbers.entries()) writeU32(bytes, DIGEST_BYTES + 4 * i, number);
  return bytes;
}

/** Reads what follows the id 21, 22 or 23 (BEP 52). A range may be one that no file has; the hashes are as many as it says.
 * The root is a copy. Throws `DecodeError`. */
export function decodeHashMessage(id: number, payload: Uint8Array): HashMessage {
  const kind = KINDS.get(id as typeof MESSAGE.hashRequest);
  if (!kind) throw new DecodeError(FORMAT, 0, `expected message 21, 22 or 23, not ${id}`);
  if (payload.length < RANGE_BYTES)
    throw new DecodeError(FORMAT, payload.length, `expected ${RANGE_BYTES} bytes at least`);
  const [baseLayer, index, length, proofLayers] = [0, 4, 8, 12].map((at) =>
    readU32(payload, DIGEST_BYTES + at),
  ) as [number, number, number, number];
  const range: HashRange = { root: payload.slice(0, DIGEST_BYTES), baseLayer, index, length, proofLayers };
  const hashes = payload.subarray(RANGE_BYTES);
  const count = kind === "hashes" ? length + proofHashes(range) : 0;
  if (hashes.length !== count * DIGEST_BYTES)
    throw new DecodeError(FORMAT, RANGE_BYTES, `expected ${count} hashes, ${hashes.length} bytes came`);
  return kind === "hashes" ? { kind, range, hashes } : { kind, range };
}
