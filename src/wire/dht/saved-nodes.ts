import { DecodeError } from "../../base/errors.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { viewBencode } from "../bencode-view.ts";
import type { AddressFamily } from "../compact-peers.ts";
import type { NodeContact } from "./krpc.ts";
import { decodeCompactNodes, encodeCompactNodes } from "./krpc-nodes.ts";
import { DHT_ID_BYTES } from "./node-id.ts";

/** State of the DHT node that is saved across restarts: its ids, and nodes of its routing table. */
export interface DhtState {
  readonly families: readonly DhtFamilyState[];
}

export interface DhtFamilyState {
  readonly family: AddressFamily;
  /** 20 bytes. */
  readonly id: Uint8Array;
  readonly nodes: readonly NodeContact[];
}

/** Nodes saved per family: enough for a restart even if most of them have left. */
export const MAX_SAVED_NODES = 300;
/** Larger files are refused; a saved state is below 25 KB. */
export const MAX_DHT_STATE_BYTES = 64 * 1024;

/** Encodes a state for saving. */
export function encodeDhtState({ families }: DhtState): Uint8Array<ArrayBuffer> {
  const members = families.map(({ family, id, nodes }) => [
    `n${family}`,
    bencodeDict({ id, nodes: encodeCompactNodes(nodes.slice(0, MAX_SAVED_NODES), family) }),
  ]);
  return encodeBencode(bencodeDict(Object.fromEntries(members)));
}

/** Decodes a saved state. Throws `DecodeError`. */
export function decodeDhtState(bytes: Uint8Array): DhtState {
  const view = viewBencode(bytes);
  const families = ([4, 6] as const).flatMap((family) => {
    const part = view.get(`n${family}`);
    if (!part) return [];
    const id = part.get("id")?.bytes();
    if (id?.length !== DHT_ID_BYTES) throw new DecodeError("DHT state", 0, "expected an id of 20 bytes");
    const nodes = decodeCompactNodes(
      part.get("nodes")?.bytes() ?? new Uint8Array(0),
      family,
      MAX_SAVED_NODES,
    );
    return [{ family, id: Uint8Array.from(id), nodes }];
  });
  return { families };
}
