import type { PeerAddress } from "../../base/address.ts";
import type { ContentId, Infohash } from "../../base/ids.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { LiveMeta } from "../../wire/live-meta.ts";
import type { LivePlace } from "./source-place.ts";

/** What shall be broadcast, and how. */
export interface BroadcastRequest {
  /** Whose key and state are used: the same name is the same stream, also after a restart. Letters, digits, `-`, `_`, `.`
   * and spaces, at most 64. Shown where there is no title. */
  readonly name: string;
  readonly place: LivePlace;
  /** Begins anew where it ends; files only. */
  readonly isLooped: boolean;
  /** It stands by: goes on air when nobody else is with this key, and no longer than until somebody else is. False unless said. */
  readonly isStandby?: boolean;
  /** Whether its source may be at home: a user's own may, that of somebody's list may not. True unless said. */
  readonly allowPrivateUrls?: boolean;
  /** What is shown to people. */
  readonly meta: LiveMeta;
  /** Announce URLs; each is asked. */
  readonly trackers: readonly string[];
  /** Relays that are listed in the transport file; a private source talks to them alone. */
  readonly relays: readonly PeerAddress[];
  readonly isPrivate: boolean;
  /** Bytes a second to all peers together; undefined for no limit of its own. */
  readonly uploadLimit: number | undefined;
  /** The rate of the stream, bytes a second, where its owner knows it; measured where not. Counts at the first start. */
  readonly bytesPerSecond: number | undefined;
  /** HLS manifests with the same media, for viewers whose swarm is late. */
  readonly manifests: readonly string[];
  /** Addresses at which this source can be called, put in its links (`x.pe`). */
  readonly addresses: readonly PeerAddress[];
}

/** A stream that we broadcast. */
export interface Broadcast {
  readonly request: BroadcastRequest;
  readonly infohash: Infohash;
  readonly contentId: ContentId;
  readonly transportFile: Uint8Array;
  /** Where that lies on our disk. */
  readonly transportFilePath: string;
  readonly magnet: string;
  /** `sluice:?magnet=…` */
  readonly link: string;
  readonly startedAt: UnixSeconds;
  figures(): BroadcastFigures;
  /** Resolves when it is over: its source has ended, or it was stopped. Rejects with `SluiceError` where the source failed. */
  readonly ended: Promise<void>;
  /** Ends it: tells the peers, writes its state. */
  stop(): Promise<void>;
}

/** How a broadcast is doing. */
export interface BroadcastFigures {
  /** `standby`: somebody else is on air; `waiting`: nothing has come from the source yet; `silent`: nothing comes now; `late`: peers wait
   * for our upload. */
  readonly health: "standby" | "waiting" | "good" | "silent" | "late" | "forked" | "ended";
  /** The same in a few words, for people, with the number that matters. */
  readonly remark: string;
  /** Peers that are connected, and those that get stripes from us. */
  readonly peers: number;
  readonly children: number;
  /** The newest piece. */
  readonly seq: number | undefined;
  readonly pieceAtMs: number | undefined;
  /** By the stream's own clock; undefined before its first second. */
  readonly bytesPerSecond: number | undefined;
  readonly uploadBytesPerSecond: number;
  readonly uploaded: number;
}

/** All that we broadcast. */
export interface Broadcasts {
  /** Starts a broadcast; resolves when its identity is known and peers can join. Rejects with `SluiceError`: a source
   * that cannot be read, a name that is live already, a full disk. */
  start(request: BroadcastRequest, signal?: AbortSignal): Promise<Broadcast>;
  get(name: string): Broadcast | undefined;
  all(): readonly Broadcast[];
  /** Stops all of them. */
  close(): Promise<void>;
}
