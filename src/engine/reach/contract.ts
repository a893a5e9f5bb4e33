import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Net, TcpHandlers, TcpSocket, TextSocket, TextSocketHandlers } from "../../runtime/contract.ts";
import type { CandidateOrigin } from "../../swarm/contract.ts";
import type { TrackerAsker } from "../../swarm/tracker/sight.ts";

/**
 * How peers are called and let in. Whatever changes the way to them (encryption, uTP, a proxy, limits) takes one of these
 * and gives another: a connection is two streams, however it came about. See docs/design/reach.md.
 */
export interface PeerNet extends Pick<Net, "listen"> {
  connect(address: PeerAddress, handlers: TcpHandlers, options: PeerCallOptions): TcpSocket;
}

/** How a peer is called. */
export interface PeerCallOptions {
  readonly timeoutMs: number;
  /** It calls us at the same moment (BEP 55): over uTP, or in vain. */
  readonly isPunch?: boolean;
}

/** A way to find peers beside trackers: the DHT, local discovery. */
export interface PeerFinder {
  /** Looks for peers of a swarm, and tells others of us, until the returned function is called. */
  join(wish: PeerWish): () => void;
}

/** What a swarm wants of those who find peers. Never said for private content (BEP 27). */
export interface PeerWish {
  readonly infohash: Infohash;
  /** Whether others may be told that we are in this swarm; false for who only looks. */
  readonly announces: boolean;
  /** How many it is connected to now: finders look again sooner where that is few. */
  peers(): number;
  /** Hears of addresses, from any of them, as often as they come. */
  found(addresses: readonly PeerAddress[], origin: CandidateOrigin): void;
}

/** What the DHT does for others (BEP 5, 44, 46). */
export interface Dht extends PeerFinder {
  /** Where others ask it: a UDP port. */
  readonly port: number;
  /** The value whose SHA-1 (over its bencoded form) is `target`, bencoded; undefined where nobody has it. */
  get(target: Uint8Array, signal?: AbortSignal): Promise<Uint8Array | undefined>;
  /** Keeps an immutable item of at most 1,000 bencoded bytes there until the returned function is called. */
  keep(value: Uint8Array): () => void;
  /** The latest mutable item of a key and salt, signature checked. */
  getMutable(key: Uint8Array, salt: Uint8Array, signal?: AbortSignal): Promise<MutableItem | undefined>;
  /** Keeps what `item` says now there, asked again at each round, until the returned function is called. */
  keepMutable(item: () => SignedItem): () => void;
  /** Nodes that a magnet's `x.pe`, a transport file's `nodes` or a peer's PORT message names. Not believed before they answer. */
  addNodes(addresses: readonly PeerAddress[]): void;
  /** The same as `host:port`, where a stranger wrote them: names are looked up, and what is at home is left out. */
  addNames(nodes: readonly string[]): void;
  figures(): DhtFigures;
}

/** A mutable item (BEP 44). `value` is bencoded. */
export interface MutableItem {
  readonly sequence: number;
  readonly value: Uint8Array;
}

/** A mutable item with what proves it. */
export interface SignedItem extends MutableItem {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** At most 64 bytes. */
  readonly salt: Uint8Array;
  /** Over salt, sequence and value as BEP 44 writes them. 64 bytes. */
  readonly signature: Uint8Array;
}

export interface DhtFigures {
  /** Nodes that have answered, by family. */
  readonly nodes4: number;
  readonly nodes6: number;
  readonly lookups: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** The one UDP port of the peer network, shared by whoever speaks over it. Both families where the machine has both. */
export interface SharedUdp {
  readonly port: number;
  send(bytes: Uint8Array, to: PeerAddress): void;
  /** Hears of the datagrams of one protocol from now on. The bytes are valid during the call only. */
  listen(protocol: UdpProtocol, received: UdpReceiver): void;
  close(): void;
}

export type UdpReceiver = (bytes: Uint8Array, from: PeerAddress) => void;

/** What a datagram's first bytes say it is: a bencoded dictionary (BEP 5), a uTP header (BEP 29), a question to a tracker
 * (BEP 15). */
export type UdpProtocol = "dht" | "utp" | "tracker";

/** Our own tracker, as those come to it who ask over HTTP. It answers on the UDP port by itself. See docs/design/tracker.md. */
export interface TrackerDesk {
  /** Whether it is there for whoever asks, and not for our own content alone. */
  readonly isOpen: boolean;
  /** The answer to an announce (BEP 3), by its query without the `?`; what is wrong with it, too. */
  announce(query: string, asker: TrackerAsker): Uint8Array<ArrayBuffer>;
  /** The answer to a scrape (BEP 48). */
  scrape(query: string, asker: TrackerAsker): Uint8Array<ArrayBuffer>;
  /** Takes a WebSocket of whoever cannot be reached but by WebRTC. */
  join(asker: TrackerAsker, socket: TextSocket): TextSocketHandlers;
}

/** How much of the peer network is used, and what of this machine it may use. `src/config.ts` fills it. */
export interface ReachSettings {
  readonly dht: boolean;
  /** `host:port` of nodes by which a first start finds the others. */
  readonly dhtNodes: readonly string[];
  /** Local service discovery. */
  readonly lsd: boolean;
  /** `allow`: called in the clear first, encrypted where that fails; `prefer`: the other way round; `require`; `off`. Who
   * calls us chooses, but for `require` and `off`. */
  readonly encryption: "allow" | "prefer" | "require" | "off";
  readonly utp: boolean;
  /** Whether the router is asked to let others in. */
  readonly portMapping: boolean;
  /** A name of an interface or an address: all peer, tracker and DHT traffic leaves there. Empty: wherever the system says. */
  readonly bind: string;
  /** `socks5://[user:password@]host:port` or `http://…`; empty: none. */
  readonly proxy: string;
  /** Nothing may go around the proxy: what it cannot carry is not sent. */
  readonly proxyStrict: boolean;
  /** Whether rate limits hold for peers at private addresses too. */
  readonly limitLan: boolean;
  /** A second pair of limits, and when it holds; bytes a second, 0 for none. Minutes of the local day; undefined: never. */
  readonly scheduled: ScheduledLimits | undefined;
  /** Path of a list of addresses that are not talked to (P2P or CIDR form); empty: none. */
  readonly ipFilter: string;
  /** A file, or a command, that tells the port others reach us at; empty: none. */
  readonly portFile: string;
  readonly portCommand: string;
  /** Answers announces of others: those of our broadcasts, or of whoever asks. */
  readonly tracker: "off" | "own" | "open";
}

export interface ScheduledLimits {
  readonly fromMinute: number;
  /** Less than `fromMinute`: over midnight. */
  readonly toMinute: number;
  readonly uploadLimit: number;
  readonly downloadLimit: number;
}
