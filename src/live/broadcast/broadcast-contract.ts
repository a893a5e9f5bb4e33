import type { PeerAddress } from "../../base/address.ts";
import type { ContentId, Infohash } from "../../base/ids.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { LiveMeta } from "../../wire/live/meta.ts";
import type { LiveVariant } from "../../wire/live/variants.ts";
import type { EncodedRendition } from "../input/encoded-input.ts";
import type { LivePlace } from "../input/source-place.ts";

/** What to broadcast, and how. */
export interface BroadcastRequest {
  /** Selects the key and the state: the same name is the same stream, also after a restart. Letters, digits, `-`, `_`,
   * `.` and spaces, at most 64. Shown if there is no title. */
  readonly name: string;
  readonly place: LivePlace;
  /** The number of the programme to broadcast, if the source has several; undefined for all of them. */
  readonly programme?: number;
  /** The same programme in other qualities, each as a stream of its own. */
  readonly renditions?: readonly RenditionRequest[];
  /** The source starts again at its end; files only. */
  readonly isLooped: boolean;
  /** Run as a standby: on air only while no other program with this key is. Default: false. */
  readonly isStandby?: boolean;
  /** Whether the source may be in the local network: true for a user's own request, false for one from a list.
   * Default: true. */
  readonly allowPrivateUrls?: boolean;
  /** The transport file of the stream that replaces this one: viewers are sent there, and this key is revoked. */
  readonly successorPath?: string;
  /** Replace the key at this start: the old stream sends its viewers to the new one for 30 days. */
  readonly isRotated?: boolean;
  /** Title, logo and categories for viewers. */
  readonly meta: LiveMeta;
  /** Announce URLs; all of them are used. */
  readonly trackers: readonly string[];
  /** Relays listed in the transport file. A private source connects to these only. */
  readonly relays: readonly PeerAddress[];
  readonly isPrivate: boolean;
  /** Upload limit in bytes per second, for all peers together; undefined for none. */
  readonly uploadLimit: number | undefined;
  /** The rate of the stream in bytes per second, if the user knows it; otherwise it is measured. Used at the first
   * start only. */
  readonly bytesPerSecond: number | undefined;
  /** URLs of HLS manifests with the same media, for viewers whose peers are late. */
  readonly manifests: readonly string[];
  /** Addresses of this source, for its links (`x.pe`). */
  readonly addresses: readonly PeerAddress[];
}

/** A further quality of a broadcast: encoded from its source, another programme of its source, or another source. */
export type RenditionRequest =
  | ({ readonly kind: "encoded" } & EncodedRendition)
  | { readonly kind: "programme"; readonly number: number }
  | { readonly kind: "source"; readonly place: LivePlace };

/** A running broadcast. */
export interface Broadcast {
  readonly request: BroadcastRequest;
  readonly infohash: Infohash;
  readonly contentId: ContentId;
  readonly transportFile: Uint8Array;
  /** The path of the transport file. */
  readonly transportFilePath: string;
  readonly magnet: string;
  /** `sluice:?magnet=…` */
  readonly link: string;
  readonly startedAt: UnixSeconds;
  /** Where a program publishes the stream; undefined unless the source is RTMP, or SRT to this machine. */
  readonly publishing?: Publishing;
  /** Publishes the qualities of the broadcast, this stream among them, in the transport file and to viewers. Rejects with `disk_full`. */
  offer(variants: readonly LiveVariant[]): Promise<void>;
  figures(): BroadcastFigures;
  /** Resolves when the source has ended or the broadcast was stopped. Rejects with `SluiceError` if the source failed. */
  readonly ended: Promise<void>;
  /** Stops it: notifies the peers and writes its state. */
  stop(): Promise<void>;
}

/** What the user enters in the program that publishes. */
export interface Publishing {
  /** `rtmp://host:port/app` or `srt://host:port`, one for each address of this machine. */
  readonly urls: readonly string[];
  /** The stream key, of SRT the passphrase. Anyone who has it can publish. */
  readonly key: string;
}

/** The state of a broadcast. */
export interface BroadcastFigures {
  /**
   * `standby`: another program is on air; `waiting`: the source has sent nothing yet; `silent`: the source has
   * stopped sending; `late`: peers receive less than the stream's rate from us; `forked`: another program signs with
   * this key.
   */
  readonly health: "standby" | "waiting" | "good" | "silent" | "late" | "forked" | "ended";
  /** The same as a sentence, with the figure that matters. */
  readonly remark: string;
  /** Connected peers, and those that receive stripes from this source. */
  readonly peers: number;
  readonly children: number;
  /** The sequence number of the newest piece. */
  readonly seq: number | undefined;
  readonly pieceAtMs: number | undefined;
  /** Measured by the stream's clock; undefined in its first second. */
  readonly bytesPerSecond: number | undefined;
  readonly uploadBytesPerSecond: number;
  readonly uploaded: number;
}

/** All broadcasts of an engine. */
export interface Broadcasts {
  /** Starts a broadcast; resolves when its identity is open and peers can join. Rejects with `SluiceError`: the source
   * cannot be read, the name is in use, the disk is full. */
  start(request: BroadcastRequest, signal?: AbortSignal): Promise<Broadcast>;
  get(name: string): Broadcast | undefined;
  all(): readonly Broadcast[];
  /** Stops all broadcasts. */
  close(): Promise<void>;
}
