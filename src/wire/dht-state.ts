import { DecodeError } from "../base/errors.ts";
import { bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { viewBencode } from "./bencode-view.ts";
import type { AddressFamily } from "./compact-peers.ts";
import { DHT_ID_BYTES } from "./dht-id.ts";
import type { NodeContact } from "./krpc.ts";
import { decodeCompactNodes, encodeCompactNodes } from "./krpc-nodes.ts";

/** What a node remembers from one run to the next: who it was, and whom it knew. */
export interface DhtState {
  readonly families: readonly DhtFamilyState[];
}

export interface DhtFamilyState {
  readonly family: AddressFamily;
  /** 20 bytes. */
  readonly id: Uint8Array;
  readonly nodes: readonly NodeContact[];
}

/** Nodes that are kept of a family: more than a start needs even where most of them have gone meanwhile. */
export const MAX_SAVED_NODES = 300;
/** A file of ours is below 25 KB. */
export const MAX_DHT_STATE_BYTES = 64 * 1024;

/** The bytes of a saved state. */
export function encodeDhtState({ families }: DhtState): Uint8Array<ArrayBuffer> {
  const members = families.map(({ family, id, nodes }) => [
    `n${family}`,
    bencodeDict({ id, nodes: encodeCompactNodes(nodes.slice(0, MAX_SAVED_NODES), family) }),
  ]);
  return encodeBencode(bencodeDict(Object.fromEntries(members)));
}

/** Reads a saved state. Throws `DecodeError`. */
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
