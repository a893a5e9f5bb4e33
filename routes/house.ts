import type { Network } from "../src/base/network.ts";
import type { Diagnosis } from "../src/engine/diagnosis/contract.ts";
import type { Engine } from "../src/engine/engine.ts";
import type { Broadcast } from "../src/engine/live/broadcast-contract.ts";
import type { BroadcastWish } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import type {
  AcceptWebSocket,
  RequestOrigin,
  TextSocket,
  TextSocketHandlers,
} from "../src/runtime/contract.ts";
import type { Forwarded } from "./access-proxy.ts";

/** What the routes stand on. */
export interface House {
  readonly engine: Engine;
  readonly library?: Library;
  /** Players to open content in; none where it is absent. */
  readonly players?: Players;
  /** What is broadcast from here; nothing can be where it is absent. */
  readonly broadcasts?: BroadcastDesk;
  /** Our own tracker; there is none where it is absent. */
  readonly tracker?: TrackerDesk;
  /** How all of it is doing; there is no such address where it is absent. */
  readonly diagnose?: () => Promise<Diagnosis>;
  /** Whether this machine has an address besides loopback. */
  readonly hasNetwork?: () => boolean;
  /** Where other devices find this engine, such as `http://192.168.1.5:6878/`; none while it listens for this host alone. */
  readonly networkUrls?: () => readonly string[];
  /** 40 hex digits that stay the same for this installation and say nothing about it; only own pages are told. */
  readonly deviceId?: string;
  /** The version of this program, such as `0.1.0`. */
  readonly version: string;
  /** Names and addresses besides our own by which the interface may be addressed: `tv.lan`, or `tv.lan:80` with this port alone. */
  readonly allowedHosts?: readonly string[];
  /** Who may name URLs that lead to this host and its network; `local` unless said. */
  readonly privateUrls?: "local" | "intranet";
  readonly access?: AccessSettings;
  /** What `get_version` calls the system. */
  readonly platform?: "linux" | "win32" | "android";
}

/** A tracker, as whoever asks it over HTTP comes to it. */
export interface TrackerDesk {
  /** Whether it is there for all content, and not for our own alone. */
  readonly isOpen: boolean;
  /** Answers an announce, and a scrape, by the query without its `?`: also where that is wrong. */
  announce(query: string, asker: TrackerAsker): Uint8Array<ArrayBuffer>;
  scrape(query: string, asker: TrackerAsker): Uint8Array<ArrayBuffer>;
  /** Takes a WebSocket. */
  join(asker: TrackerAsker, socket: TextSocket): TextSocketHandlers;
}

interface TrackerAsker {
  readonly host: string;
  /** A page of another site may be behind it: it is told nothing of home networks. */
  readonly isForeign: boolean;
}

/** A device or program that plays (interface: Player). */
export interface Player {
  readonly id: string;
  /** `proxy`: a program of this host, without a protocol. */
  readonly type: "proxy" | "aircast";
  readonly protocol: "enginecast" | "chromecast" | null;
  readonly name: string;
  /** A URL, or null. */
  readonly icon: string | null;
}

/** The players that can be reached from here. */
export interface Players {
  list(): Promise<readonly Player[]>;
  /** Plays a URL of ours in a player that `list` names. Rejects with `SluiceError`. */
  open(id: string, url: string): Promise<void>;
}

/** What is broadcast from here, and goes on after a restart. */
export interface BroadcastDesk {
  /** Resolves when it is on air and will be so again. Rejects with `SluiceError`; nothing is kept then. */
  start(wish: BroadcastWish): Promise<OnAir>;
  /** Ends it for good. Rejects with `unknown_broadcast`. */
  stop(name: string): Promise<void>;
  list(): readonly OnAir[];
}

/** One of them. */
export interface OnAir {
  readonly name: string;
  /** Absent for what a subscribed list says. */
  readonly wish: BroadcastWish | undefined;
  /** Absent while it cannot be started. */
  readonly broadcast: Broadcast | undefined;
  /** Why it is not on air; it is tried again. */
  readonly problem: string | undefined;
}

/** Who may ask, as far as settings say (docs/design/access.md). */
export interface AccessSettings {
  /** Names of this machine. */
  readonly ownNames?: readonly string[];
  /** Proxies whose X-Forwarded-For, -Proto and -Host are believed. */
  readonly trustedProxies?: readonly Network[];
  /** Networks that count as the same subnet. */
  readonly intranetNetworks?: readonly Network[];
  /** Origins of other pages that may call with a token, such as `https://tv.example`. */
  readonly allowedOrigins?: readonly string[];
}

/** How every route is called: the one door through which it learns who asks. */
export interface RouteEnv {
  readonly Bindings: {
    /** The asker behind a trusted proxy, once the gate has looked. */
    readonly origin: RequestOrigin;
    /** What that proxy says; only the gate puts it here. */
    readonly forwarded?: Forwarded | undefined;
    /** Of paths that are there for everybody: a page of another site may have caused the request. */
    readonly isForeign?: boolean;
    /** There where the request asks to become a WebSocket. */
    readonly acceptWebSocket?: AcceptWebSocket | undefined;
  };
}
