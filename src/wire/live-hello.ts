import { type BencodeDict, integerOf } from "./bencode.ts";
import { type BencodeInput, bencodeDict } from "./bencode-encode.ts";

/** What a peer of a live stream says of itself in the handshake of the extension protocol (BEP 10, member `sl`). */
export interface LivePeerInfo {
  readonly role: LiveRole;
  /** What it offers to upload, in bytes a second. */
  readonly uploadBytesPerSecond: number;
  /** The stripe that it would rather hand on than others; see {@link homeStripeOf}. */
  readonly homeStripe: number;
  /** Its wall clock, in UNIX ms; 0 where it has none. */
  readonly clockMs: number;
}

/** By their numbers on the wire. */
const ROLES = ["viewer", "relay", "source"] as const;
export type LiveRole = (typeof ROLES)[number];

/** The name of the extension in the handshake's `m`. */
export const LIVE_EXTENSION = "sl_live";
const VERSION = 1;
const MAX_U48 = 2 ** 48 - 1;

/** The home stripe of a peer by the hash of its peer id: decided by chance, so that all stripes have as many hands. */
export function homeStripeOf(peerIdHash: Uint8Array, stripeCount: number): number {
  return peerIdHash[2]! % stripeCount;
}

/** The `sl` member. */
export function livePeerDict(info: LivePeerInfo): ReadonlyMap<string, BencodeInput> {
  return bencodeDict({
    h: info.homeStripe,
    ms: info.clockMs,
    role: ROLES.indexOf(info.role),
    up: Math.round(info.uploadBytesPerSecond),
    v: VERSION,
  });
}

/** Reads an `sl` member; undefined where it is none, or of another version: such a peer is not spoken to. A role that
 * nobody knows is a viewer's, and what is out of range counts as 0. */
export function readLivePeer(dict: BencodeDict | undefined): LivePeerInfo | undefined {
  if (!dict || integerOf(dict.get("v")) !== VERSION) return undefined;
  return {
    role: ROLES[integerOf(dict.get("role")) ?? 0] ?? ROLES[0],
    uploadBytesPerSecond: numberIn(dict, "up", MAX_U48),
    homeStripe: numberIn(dict, "h", 15),
    clockMs: numberIn(dict, "ms", MAX_U48),
  };
}

function numberIn(dict: BencodeDict, key: string, most: number): number {
  const value = integerOf(dict.get(key));
  return value !== undefined && value >= 0 && value <= most ? value : 0;
}
