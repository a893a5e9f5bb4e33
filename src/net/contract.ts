import type { PeerAddress } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";
import type { CandidateOrigin } from "../protocol/swarm/contract.ts";
import type { TrackerClient } from "../protocol/tracker/visibility.ts";
import type { Net, TcpHandlers, TcpSocket, TextSocket, TextSocketHandlers } from "../runtime/contract.ts";
import type { Offer } from "../wire/tracker/server-ws.ts";

/**
 * Opens and accepts connections to peers. Each layer (encryption, uTP, address filter) wraps a `PeerNet` and returns another;
 * a connection is always two byte streams. See docs/design/reach.md.
 */
export interface PeerNet extends Pick<Net, "listen"> {
  connect(address: PeerAddress, handlers: TcpHandlers, options: PeerConnectOptions): TcpSocket;
}

export interface PeerConnectOptions {
  readonly timeoutMs: number;
  /** The peer connects to us at the same time (BEP 55), which works over uTP only. */
  readonly isPunch?: boolean;
  /** Encrypt the connection if the peer supports it, unless the user turned encryption off. */
  readonly prefersEncryption?: boolean;
}

/** A source of peers other than trackers: the DHT or local service discovery. */
export interface PeerFinder {
  /** Searches for peers of a swarm, and announces us if requested, until the returned function is called. */
  join(search: PeerSearch): () => void;
}

/** A swarm's request for peers. Never made for private content (BEP 27). */
export interface PeerSearch {
  readonly infohash: Infohash;
  /** True if this machine is announced to other peers; false for a search only. */
  readonly announces: boolean;
  /** Number of connected peers. Finders search more often if it is low. */
  peers(): number;
  /** Receives found addresses, any number of times. */
  found(addresses: readonly PeerAddress[], origin: CandidateOrigin): void;
}

/** The DHT node (BEP 5, 44, 46). */
export interface Dht extends PeerFinder {
  /** UDP port at which other nodes send queries. */
  readonly port: number;
  /** Finds the bencoded value whose SHA-1 is `target`; undefined if no node has it. */
  get(target: Uint8Array, signal?: AbortSignal): Promise<Uint8Array | undefined>;
  /** Publishes an immutable item of at most 1,000 bencoded bytes until the returned function is called. */
  publish(value: Uint8Array): () => void;
  /** Finds the latest mutable item of a key and salt, with its signature verified. */
  getMutable(key: Uint8Array, salt: Uint8Array, signal?: AbortSignal): Promise<MutableItem | undefined>;
  /** Publishes the result of `item`, called again in each round, until the returned function is called. */
  publishMutable(item: () => SignedItem): () => void;
  /** Adds unverified nodes from a magnet's `x.pe`, a transport file's `nodes` or a peer's PORT message. */
  addNodes(addresses: readonly PeerAddress[]): void;
  /** Resolves `host:port` texts from an untrusted source and adds the nodes with a public address. */
  addNames(nodes: readonly string[]): void;
  figures(): DhtFigures;
}

/** A mutable item (BEP 44). `value` is bencoded. */
export interface MutableItem {
  readonly sequence: number;
  readonly value: Uint8Array;
}

/** A mutable item with its signature. */
export interface SignedItem extends MutableItem {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** At most 64 bytes. */
  readonly salt: Uint8Array;
  /** 64 bytes, over salt, sequence and value as BEP 44 encodes them. */
  readonly signature: Uint8Array;
}

export interface DhtFigures {
  /** Nodes that have responded, by IP version. */
  readonly nodes4: number;
  readonly nodes6: number;
  readonly lookups: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** The UDP port that all UDP protocols of the peer network share. Dual-stack if the machine has both IP versions. */
export interface SharedUdp {
  readonly port: number;
  send(bytes: Uint8Array, to: PeerAddress): void;
  /** Sets the receiver for the datagrams of one protocol. The bytes are valid only during the call. */
  listen(protocol: UdpProtocol, received: UdpReceiver): void;
  close(): void;
}

export type UdpReceiver = (bytes: Uint8Array, from: PeerAddress) => void;

/** Protocol of a datagram by its first bytes: a bencoded dictionary (BEP 5), a uTP header (BEP 29), STUN or DTLS (RFC 7983), or a
 * tracker request (BEP 15). */
export type UdpProtocol = "dht" | "utp" | "webrtc" | "tracker";

/** Makes and takes the WebRTC descriptions that WebSocket trackers relay. See docs/design/webrtc.md. */
export interface WebRtcSignaling {
  /** Makes up to `count` offers; `isLocal`: the tracker has an address in a local network. */
  offers(infohash: Infohash, isLocal: boolean, count: number): Promise<readonly Offer[]>;
  /** Answers the offer of a peer; undefined if it is not wanted or malformed. */
  answer(infohash: Infohash, isLocal: boolean, offer: Offer): Promise<Offer | undefined>;
  /** Takes the answer to an offer of ours; ignores others. */
  answered(infohash: Infohash, answer: Offer): void;
}

/** The built-in tracker as HTTP routes use it. UDP requests are answered on the shared port. See docs/design/tracker.md. */
export interface TrackerServer {
  /** True if the tracker accepts any content; false if it accepts only content that is open here. */
  readonly isOpen: boolean;
  /** Answers an announce (BEP 3) given its query without `?`. Errors are encoded as a failure response. */
  announce(query: string, client: TrackerClient): Uint8Array<ArrayBuffer>;
  /** Answers a scrape (BEP 48). */
  scrape(query: string, client: TrackerClient): Uint8Array<ArrayBuffer>;
  /** Takes over the WebSocket of a WebRTC peer. */
  join(client: TrackerClient, socket: TextSocket): TextSocketHandlers;
}

/** Settings of the peer network's parts. Filled by `src/settings/config.ts`. */
export interface ReachSettings {
  readonly dht: boolean;
  /** `host:port` of bootstrap nodes. */
  readonly dhtNodes: readonly string[];
  /** Local service discovery. */
  readonly lsd: boolean;
  /**
   * `allow`: connect in plain text first, then encrypted if that fails; `prefer`: the reverse; `require`; `off`. For incoming
   * connections the peer chooses, except with `require` and `off`.
   */
  readonly encryption: "allow" | "prefer" | "require" | "off";
  readonly utp: boolean;
  /** True if browsers and other WebRTC peers are introduced by WebSocket trackers. */
  readonly webrtc: boolean;
  /** `host:port` of STUN servers that report the external address to WebRTC. */
  readonly iceServers: readonly string[];
  /** True if the router is asked to forward the peer port. */
  readonly portMapping: boolean;
  /** Interface name or address from which all peer, tracker and DHT traffic leaves. Empty: the system chooses. */
  readonly bind: string;
  /** `socks5://[user:password@]host:port` or `http://…`; empty: none. */
  readonly proxy: string;
  /** True if traffic that the proxy cannot carry is not sent at all. */
  readonly proxyStrict: boolean;
  /** True if rate limits apply to peers at private addresses, too. */
  readonly limitLan: boolean;
  /** A second pair of limits and its time of day; undefined: none. */
  readonly scheduled: ScheduledLimits | undefined;
  /** Path of a list of blocked addresses (P2P or CIDR format); empty: none. */
  readonly ipFilter: string;
  /** A file, or a command, that contains or prints the externally forwarded port; empty: none. */
  readonly portFile: string;
  readonly portCommand: string;
  /** Content that the built-in tracker accepts: none, only what is open here, or any. */
  readonly tracker: "off" | "own" | "open";
}

/** Rate limits in bytes per second (0: none) for a part of the day, in minutes since local midnight. */
export interface ScheduledLimits {
  readonly fromMinute: number;
  /** Less than `fromMinute` if the time spans midnight. */
  readonly toMinute: number;
  readonly uploadLimit: number;
  readonly downloadLimit: number;
}

/** The settings of the peer network. Rates are in bytes per second; 0 means no limit. */
export interface NetSettings {
  readonly dataDir: string;
  readonly p2pHost: string;
  /** 0: any free port. */
  readonly p2pPort: number;
  readonly uploadLimit: number;
  readonly downloadLimit: number;
  readonly reach: ReachSettings;
}
