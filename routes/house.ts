import type { Engine } from "../src/engine/engine.ts";
import type { Library } from "../src/library/library.ts";
import type { AcceptWebSocket, RequestOrigin } from "../src/runtime/contract.ts";

/** What the routes stand on. */
export interface House {
  readonly engine: Engine;
  readonly library?: Library;
  /** Players to open content in; none where it is absent. */
  readonly players?: Players;
  /** Whether this machine has an address besides loopback. */
  readonly hasNetwork?: () => boolean;
  /** 40 hex digits that stay the same for this installation and say nothing about it; only own pages are told. */
  readonly deviceId?: string;
  /** The version of this program, such as `0.1.0`. */
  readonly version: string;
  /** Names besides localhost and IP addresses by which the interface may be addressed, in lower case. */
  readonly allowedHosts?: readonly string[];
  /** What `get_version` calls the system. */
  readonly platform?: "linux" | "win32" | "android";
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

/** How every route is called: the one door through which it learns who asks. */
export interface RouteEnv {
  readonly Bindings: {
    readonly origin: RequestOrigin;
    /** There where the request asks to become a WebSocket. */
    readonly acceptWebSocket?: AcceptWebSocket | undefined;
  };
}
