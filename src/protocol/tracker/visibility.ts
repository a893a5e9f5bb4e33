import { addressScope } from "../../base/address.ts";

/** How far an address reaches: this machine, a local network, or the whole Internet. */
type Reach = "machine" | "local" | "internet";

/** A client of the tracker. */
export interface TrackerClient {
  /** The canonical source address of its requests. */
  readonly host: string;
  /** The request comes from a page of another site: the client may see, and list, only Internet addresses. */
  readonly isForeign: boolean;
}

/**
 * Returns how far an address reaches; undefined if no peer can have it. A tracker returns local addresses only to clients of a
 * local network, and loopback addresses only to this machine. For other clients such an address is unreachable or belongs to
 * another device.
 */
export function reachOf(host: string): Reach | undefined {
  const scope = addressScope(host);
  if (scope === "global") return "internet";
  if (scope === "loopback") return "machine";
  return scope === "private" || scope === "link-local" ? "local" : undefined;
}

/** Whether a peer of this reach may be returned to a client. */
export function canSee(client: TrackerClient, peer: Reach): boolean {
  if (peer === "internet") return true;
  if (client.isForeign) return false;
  const own = reachOf(client.host);
  return own === "machine" || (own === "local" && peer === "local");
}

/** Whether the client's address may be returned to other clients. */
export function canBeListed(client: TrackerClient): boolean {
  const own = reachOf(client.host);
  return own !== undefined && (own === "internet" || !client.isForeign);
}
