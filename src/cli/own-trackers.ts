import { addressText, type PeerAddress } from "../base/address.ts";
import type { ReachSettings } from "../engine/reach/contract.ts";

/** More would cost viewers time: each is asked. */
const MAX_OWN_TRACKERS = 4;

/** The announce URLs of our own tracker: it answers over UDP at the P2P port, wherever peers call us. */
export function ownTrackers(mode: ReachSettings["tracker"], addresses: readonly PeerAddress[]): string[] {
  if (mode === "off") return [];
  return addresses.slice(0, MAX_OWN_TRACKERS).map((address) => `udp://${addressText(address)}/announce`);
}
