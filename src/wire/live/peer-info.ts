import { type BencodeDict, bytesOf, integerOf } from "../bencode.ts";
import { type BencodeInput, bencodeDict } from "../bencode-encode.ts";

/** Properties of a peer of a live stream, from the extension handshake (BEP 10, member `sl`). */
export interface LivePeerInfo {
  /** A claim, which has no effect until the peer proves it (live protocol: Roles). */
  readonly role: LiveRole;
  /** Upload rate that the peer offers, in bytes per second. */
  readonly uploadBytesPerSecond: number;
  /** {@link CHALLENGE_BYTES} random bytes that the receiver signs to prove its role. */
  readonly challenge?: Uint8Array;
}

/** Index is the number on the wire. */
const ROLES = ["viewer", "relay", "source"] as const;
/** Role of a peer in a live stream. */
export type LiveRole = (typeof ROLES)[number];

/** Name of the extension in `m` of the extension handshake. */
export const LIVE_EXTENSION = "sl_live";
const VERSION = 1;
/** Length of a challenge. */
export const CHALLENGE_BYTES = 16;
const MAX_U48 = 2 ** 48 - 1;

/** Returns the home stripe of a peer from the hash of its peer id, so that peers are spread evenly over the stripes. */
export function homeStripeOf(peerIdHash: Uint8Array, stripeCount: number): number {
  return peerIdHash[2]! % stripeCount;
}

/** Encodes the `sl` member. The upload is rounded to three significant bits, because an exact figure would identify the
 * peer. */
export function livePeerDict(info: LivePeerInfo): ReadonlyMap<string, BencodeInput> {
  return bencodeDict({
    n: info.challenge,
    role: ROLES.indexOf(info.role),
    up: coarse(info.uploadBytesPerSecond),
    v: VERSION,
  });
}

function coarse(value: number): number {
  const step = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(1, value))) - 2);
  return Math.round(value / step) * step;
}

/** Reads an `sl` member; undefined if it is absent or the peer does not speak our version, which excludes the peer from the live
 * protocol. `v` is the highest version that the peer speaks, `min` the lowest one, the same if absent. An unknown role counts as
 * viewer, a number out of range as 0. */
export function readLivePeer(dict: BencodeDict | undefined): LivePeerInfo | undefined {
  const highest = integerOf(dict?.get("v")) ?? 0;
  const lowest = integerOf(dict?.get("min")) ?? highest;
  if (!dict || VERSION < lowest || VERSION > highest) return undefined;
  const challenge = bytesOf(dict.get("n"));
  return {
    role: ROLES[integerOf(dict.get("role")) ?? 0] ?? ROLES[0],
    uploadBytesPerSecond: numberIn(dict, "up", MAX_U48),
    ...(challenge?.length === CHALLENGE_BYTES && { challenge: challenge.slice() }),
  };
}

function numberIn(dict: BencodeDict, key: string, max: number): number {
  const value = integerOf(dict.get(key));
  return value !== undefined && value >= 0 && value <= max ? value : 0;
}
