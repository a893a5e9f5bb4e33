import { addressScope } from "../../base/address.ts";

/** How near an address is: of this machine, of some home network, or of the whole Internet. */
type Nearness = "machine" | "home" | "everywhere";

/** Who asks a tracker. */
export interface TrackerAsker {
  /** The canonical address that it asks from. */
  readonly host: string;
  /** A page of another site may have made a browser ask: it is told, and may tell, what the whole Internet may know. */
  readonly isForeign: boolean;
}

/**
 * How near an address is; undefined where no peer can have it. A tracker tells addresses of home networks to who is in
 * one, and those of this machine to this machine alone: elsewhere they lead nowhere, or to somebody else's devices.
 */
export function nearnessOf(host: string): Nearness | undefined {
  const scope = addressScope(host);
  if (scope === "global") return "everywhere";
  if (scope === "loopback") return "machine";
  return scope === "private" || scope === "link-local" ? "home" : undefined;
}

/** Whether a peer at such an address is told to this asker. */
export function maySee(asker: TrackerAsker, peer: Nearness): boolean {
  if (peer === "everywhere") return true;
  if (asker.isForeign) return false;
  const own = nearnessOf(asker.host);
  return own === "machine" || (own === "home" && peer === "home");
}

/** Whether the address that it asks from may be told to others. */
export function mayBeListed(asker: TrackerAsker): boolean {
  const own = nearnessOf(asker.host);
  return own !== undefined && (own === "everywhere" || !asker.isForeign);
}
