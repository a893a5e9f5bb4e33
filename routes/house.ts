import type { Engine } from "../src/engine/engine.ts";
import type { Library } from "../src/library/library.ts";
import type { AcceptWebSocket, RequestOrigin } from "../src/runtime/contract.ts";

/** What the routes stand on. */
export interface House {
  readonly engine: Engine;
  readonly library?: Library;
  /** The version of this program, such as `0.1.0`. */
  readonly version: string;
  /** Names besides localhost and IP addresses by which the interface may be addressed, in lower case. */
  readonly allowedHosts?: readonly string[];
  /** What `get_version` calls the system. */
  readonly platform?: "linux" | "win32" | "android";
}

/** How every route is called: the one door through which it learns who asks. */
export interface RouteEnv {
  readonly Bindings: {
    readonly origin: RequestOrigin;
    /** There where the request asks to become a WebSocket. */
    readonly acceptWebSocket?: AcceptWebSocket | undefined;
  };
}
