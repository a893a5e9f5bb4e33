import { addressBytes } from "../../base/address.ts";
import { concatBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import {
  type AddressFamily,
  compactPeerBytes,
  decodeCompactPeers,
  encodeCompactPeers,
} from "../compact-peers.ts";
import type { NodeContact } from "./krpc.ts";
import { DHT_ID_BYTES } from "./node-id.ts";

/** Returns the size of one compact node in bytes (BEP 5: 26, BEP 32: 38). */
export function compactNodeBytes(family: AddressFamily): number {
  return DHT_ID_BYTES + compactPeerBytes(family);
}

/** Decodes nodes of one family: reads at most `maxNodes` and skips nodes with port 0. Ids are copies. Throws `DecodeError` on a
 * partial entry. */
export function decodeCompactNodes(
  bytes: Uint8Array,
  family: AddressFamily,
  maxNodes: number,
): NodeContact[] {
  const entryBytes = compactNodeBytes(family);
  if (bytes.length % entryBytes !== 0)
    throw new DecodeError("compact nodes", bytes.length, `expected a multiple of ${entryBytes} bytes`);
  const nodes: NodeContact[] = [];
  const end = Math.min(bytes.length, maxNodes * entryBytes);
  for (let at = 0; at < end; at += entryBytes) {
    const [address] = decodeCompactPeers(bytes.subarray(at + DHT_ID_BYTES, at + entryBytes), family);
    // An IPv4-mapped IPv6 address belongs to the other family.
    if (!address || address.port === 0 || isOtherFamily(address.host, family)) continue;
    nodes.push({ id: Uint8Array.from(bytes.subarray(at, at + DHT_ID_BYTES)), address });
  }
  return nodes;
}

/** Encodes the nodes of one family; nodes of the other family are left out. */
export function encodeCompactNodes(
  nodes: readonly NodeContact[],
  family: AddressFamily,
): Uint8Array<ArrayBuffer> {
  return concatBytes(
    nodes
      .filter(({ address }) => !isOtherFamily(address.host, family))
      .flatMap(({ id, address }) => [id, encodeCompactPeers([address], family)]),
  );
}

function isOtherFamily(host: string, family: AddressFamily): boolean {
  return addressBytes(host)?.length !== (family === 4 ? 4 : 16);
}
