import type { PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { compareDistance } from "../../wire/dht/node-id.ts";
import { MAX_LOOKUP_NODES } from "./limits.ts";

/** A node found by a lookup. */
export interface LookupNode {
  /** Undefined if only the address is known, from a configuration or a link. */
  readonly id: Uint8Array | undefined;
  readonly address: PeerAddress;
  readonly hasValidId: boolean;
  state: "new" | "queried" | "slow" | "answered" | "failed";
  /** The node's token for announcing. */
  token: Uint8Array | undefined;
}

/** The nodes of a lookup, nearest to its target first. */
export class LookupList {
  readonly #target: Uint8Array;
  readonly #nodes: LookupNode[] = [];

  constructor(target: Uint8Array) {
    this.#target = target;
  }

  /** Inserts a node; returns false if its id is present, or the list is full of nearer ones. */
  add(node: LookupNode): boolean {
    const at = this.#place(node);
    if (at === undefined) return false;
    this.#nodes.splice(at, 0, node);
    if (this.#nodes.length <= MAX_LOOKUP_NODES) return true;
    const last = this.#nodes.findLastIndex(({ state }) => state === "new" || state === "failed");
    const [gone] = this.#nodes.splice(last < 0 ? this.#nodes.length - 1 : last, 1);
    return gone !== node;
  }

  /** Returns the `count` nearest nodes that have not failed. */
  nearest(count: number): LookupNode[] {
    const found: LookupNode[] = [];
    for (const node of this.#nodes) {
      if (node.state !== "failed" && found.push(node) >= count) break;
    }
    return found;
  }

  /** Returns the `count` nearest nodes that have answered. */
  answered(count: number): LookupNode[] {
    return this.#nodes.filter(({ state }) => state === "answered").slice(0, count);
  }

  #place({ id }: LookupNode): number | undefined {
    // Nodes without an id are sorted last.
    if (id === undefined) return this.#nodes.length;
    let low = 0;
    let high = this.#nodes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#nodes[middle]!.id;
      if (other === undefined || compareDistance(this.#target, id, other) <= 0) high = middle;
      else low = middle + 1;
    }
    const twin = this.#nodes[low]?.id;
    return twin !== undefined && equalBytes(twin, id) ? undefined : low;
  }
}
