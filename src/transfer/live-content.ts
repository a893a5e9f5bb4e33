import type { PeerAddress } from "../base/address.ts";
import type { SignedItem } from "../net/contract.ts";
import type { LiveRole } from "../wire/live/peer-info.ts";
import type { RoleKey } from "../wire/live/role-proof.ts";
import type { LiveTransportFile } from "../wire/live/transport-file.ts";

/** What is known about a live stream when it is opened. */
export interface LiveContent {
  /** The transport file; without a signed one it is made from the info dictionary and the trackers of the link. */
  readonly file: LiveTransportFile;
  readonly role: LiveRole;
  /** Upload limit in bytes per second; undefined: derived from the settings and the bitrate. */
  readonly uploadBytesPerSecond?: number;
  /** The only permitted peers: the relays of a private source. Absent: all peers. */
  readonly only?: readonly PeerAddress[];
  /** Peers to connect to first: those from before a restart. */
  readonly knownPeers?: readonly PeerAddress[];
  /** Source only: the signed DHT item that names the stream's current position. */
  readonly head?: SignedItem;
  /** Source only: the signed DHT item with its successor record, if the stream moves to another key. */
  readonly successor?: SignedItem;
  /** Proves to peers that this engine is the source or a relay of it. */
  readonly roleKey?: RoleKey;
  /** Source only: another source may have started at the same time with the same key and epoch. */
  readonly mayShareEpoch?: boolean;
  /** True if the URLs in its file may lead to loopback and private addresses, because a client on this host brought the file. */
  readonly allowPrivate?: boolean;
}
