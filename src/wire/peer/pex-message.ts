import type { PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import { type BencodeDict, bytesOf, decodeBencode, dictOf } from "../bencode.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";
import {
  type AddressFamily,
  compactPeerBytes,
  decodeCompactPeers,
  encodeCompactPeers,
} from "../compact-peers.ts";

/** A peer announced by peer exchange (BEP 11). */
export interface PexPeer {
  readonly address: PeerAddress;
  /** Bits such as {@link PEX_UPLOAD_ONLY}. */
  readonly flags: number;
}

/** Peers added and dropped since the last message (BEP 11). */
export interface PexMessage {
  readonly added: readonly PexPeer[];
  readonly dropped: readonly PeerAddress[];
}

/** The bits of {@link PexPeer.flags} that this program uses (BEP 11). */
export const PEX_UPLOAD_ONLY = 0x02;
export const PEX_HOLEPUNCH = 0x08;
export const PEX_REACHABLE = 0x10;

/** Peers read of each list in a message; BEP 11 allows 50. */
const MAX_PEERS = 50;

/** Encodes the payload that follows the extension id. The caller observes the limits of BEP 11. */
export function encodePexMessage(message: PexMessage): Uint8Array<ArrayBuffer> {
  const members: Record<string, Uint8Array> = {};
  for (const family of [4, 6] as const) {
    const suffix = family === 4 ? "" : "6";
    const added = message.added.filter(({ address }) => address.host.includes(":") === (family === 6));
    const addresses = added.map(({ address }) => address);
    members[`added${suffix}`] = encodeCompactPeers(addresses, family);
    members[`added${suffix}.f`] = Uint8Array.from(added, ({ flags }) => flags);
    members[`dropped${suffix}`] = encodeCompactPeers(message.dropped, family);
  }
  return encodeBencode(bencodeDict(members));
}

/** Decodes the payload that follows the extension id: at most 50 peers of each list, without added peers that have port 0. Throws
 * `DecodeError`. */
export function decodePexMessage(bytes: Uint8Array): PexMessage {
  const dict = dictOf(decodeBencode(bytes, { lenientKeyOrder: true }));
  if (!dict) throw new DecodeError("PEX", 0, "expected a dictionary");
  return {
    added: [...readAdded(dict, 4), ...readAdded(dict, 6)],
    dropped: [...readPeers(dict, "dropped", 4), ...readPeers(dict, "dropped6", 6)],
  };
}

function readAdded(dict: BencodeDict, family: AddressFamily): PexPeer[] {
  const key = family === 4 ? "added" : "added6";
  const flags = bytesOf(dict.get(`${key}.f`));
  return readPeers(dict, key, family)
    .map((address, i) => ({ address, flags: flags?.[i] ?? 0 }))
    .filter(({ address }) => address.port !== 0);
}

function readPeers(dict: BencodeDict, key: string, family: AddressFamily): PeerAddress[] {
  const bytes = bytesOf(dict.get(key));
  if (!bytes) return [];
  const entryBytes = compactPeerBytes(family);
  if (bytes.length % entryBytes !== 0) {
    throw new DecodeError(
      "PEX",
      0,
      `${key}: expected a multiple of ${entryBytes} bytes, not ${bytes.length}`,
    );
  }
  return decodeCompactPeers(bytes, family, MAX_PEERS);
}
