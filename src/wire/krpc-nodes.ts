import { addressBytes } from "../base/address.ts";
import { concatBytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import {
  type AddressFamily,
  compactPeerBytes,
  decodeCompactPeers,
  encodeCompactPeers,
} from "./compact-peers.ts";
import { DHT_ID_BYTES } from "./dht-id.ts";
import type { NodeContact } from "./krpc.ts";

/** How many bytes one node takes (BEP 5: 26, BEP 32: 38). */
export function compactNodeBytes(family: AddressFamily): number {
  return DHT_ID_BYTES + compactPeerBytes(family);
}

/** Reads nodes of one family; those at port 0 are left out, and what comes after the first `maxNodes` is not read. Ids are copies.
 * Throws `DecodeError` where the length is not a whole number of nodes. */
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
    // A mapped address among those of IPv6 would be one of the other family.
    if (!address || address.port === 0 || isOther(address.host, family)) continue;
    nodes.push({ id: Uint8Array.from(bytes.subarray(at, at + DHT_ID_BYTES)), address });
  }
  return nodes;
}

/** The compact form of nodes of this family; those of the other are left out. */
export function encodeCompactNodes(
  nodes: readonly NodeContact[],
  family: AddressFamily,
): Uint8Array<ArrayBuffer> {
  return concatBytes(
    nodes
      .filter(({ address }) => !isOther(address.host, family))
      .flatMap(({ id, address }) => [id, encodeCompactPeers([address], family)]),
  );
}

function isOther(host: string, family: AddressFamily): boolean {
  return addressBytes(host)?.length !== (family === 4 ? 4 : 16);
}
