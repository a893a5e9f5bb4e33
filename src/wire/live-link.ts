import { addressText, type PeerAddress } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";

/** What a link to a live stream may say besides its infohash. */
export interface LiveLinkParts {
  readonly infohash: Infohash;
  readonly displayName?: string;
  readonly trackers: readonly string[];
  /** Peers that are always there: relays. */
  readonly peers: readonly PeerAddress[];
  /** A URL of the transport file. */
  readonly transportFileUrl?: string;
}

/** The magnet of a live stream (BEP 9): the same members as for files, so that every reader of magnets takes it. */
export function liveMagnet(parts: LiveLinkParts): string {
  const member = (name: string, value: string) => `&${name}=${encodeURIComponent(value.toWellFormed())}`;
  return [
    `magnet:?xt=urn:btih:${parts.infohash}`,
    parts.displayName === undefined ? "" : member("dn", parts.displayName),
    ...parts.trackers.map((url) => member("tr", url)),
    ...parts.peers.map((address) => member("x.pe", addressText(address))),
    parts.transportFileUrl === undefined ? "" : member("xs", parts.transportFileUrl),
  ].join("");
}

/** The link that opens this program: the magnet in it, since an infohash alone names no tracker. */
export function liveLink(parts: LiveLinkParts): string {
  return `sluice:?magnet=${encodeURIComponent(liveMagnet(parts))}`;
}
