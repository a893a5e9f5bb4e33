import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { type Infohash, parseInfohash } from "../src/base/ids.ts";
import type { TextSocket, TextSocketHandlers } from "../src/runtime/contract.ts";
import { isForeignPage } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";

/**
 * Serves what a page needs to be a peer of a live stream: `GET /swarm/<infohash>` is the transport file, and as a WebSocket a
 * connection to the engine's peer of that swarm; below `pieces/`, the last minutes as verifiable pieces (docs/live-protocol.md, Browsers).
 */
export function createSwarmRoutes(
  dependencies: Pick<RouteDependencies, "engine" | "access">,
): Hono<RouteEnv> {
  const { engine } = dependencies;
  const app = new Hono<RouteEnv>();
  app.get("/swarm/:infohash", async (c) => {
    const infohash = infohashOf(c.req.param("infohash"));
    const isForeign = isForeignPage(c, dependencies);
    const { origin, acceptWebSocket } = c.env;
    const { remote } = origin;
    if (acceptWebSocket !== undefined)
      return acceptWebSocket({
        remote,
        open: (socket) => engine.webPeers.accept(infohash, socket, { isForeign }),
      });
    const options = { signal: c.req.raw.signal, isForeign };
    const file = await engine.webPeers.transportFile(infohash, options);
    return c.body(file, 200, { "content-type": "application/x-bittorrent", "cache-control": "no-store" });
  });
  app.get("/swarm/:infohash/pieces/:segment", async (c) => {
    const name = c.req.param("segment");
    const options = { signal: c.req.raw.signal, isForeign: isForeignPage(c, dependencies) };
    const infohash = infohashOf(c.req.param("infohash"));
    const { host } = c.env.origin.remote;
    const stream = await engine.webPeers.pieces(infohash, host, options, (pieces) =>
      name === "recent" ? pieces.recent() : pieces.segment(Number(name)),
    );
    return c.body(stream, 200, { "content-type": "application/octet-stream", "cache-control": "no-store" });
  });
  return app;
}

/** Introduces the pages of one stream to each other, by the signaling protocol of PeerJS. */
export interface Rooms {
  /** Assigns an id to a page; undefined if there are too many. */
  assignId(infohash: Infohash, host: string): string | undefined;
  /** Returns ids of other pages; undefined if the household asks too often. */
  list(infohash: Infohash, own: string, host: string): readonly string[] | undefined;
  join(infohash: Infohash, id: string, host: string, socket: TextSocket): TextSocketHandlers;
}

/** The settings of the viewers' page. */
export interface ViewerSettings {
  readonly viewerSharing: "ask" | "on" | "off";
  /** STUN servers as `host:port`. */
  readonly iceServers: readonly string[];
  /** `turn:user:password@host:port` of each. */
  readonly turnServers: readonly string[];
}

/** Serves the settings of the viewers' page and the signaling between the pages of a stream (src/web/swarm-rooms.ts). */
export function createRoomRoutes(
  { rooms, ...dependencies }: Pick<RouteDependencies, "engine" | "access"> & { readonly rooms: Rooms },
  { viewerSharing: sharing, iceServers: stun, turnServers }: ViewerSettings,
): Hono<RouteEnv> {
  const { engine } = dependencies;
  const app = new Hono<RouteEnv>();
  const iceServers = [...stun.map((server) => `stun:${server}`), ...turnServers];
  const uncached = { "cache-control": "no-store" };
  const tooMany = (c: Context<RouteEnv>) =>
    c.text("too many viewers\n", 503, { ...uncached, "retry-after": "10" });
  app.get("/swarm/:infohash/settings", async (c) => {
    const infohash = infohashOf(c.req.param("infohash"));
    const options = { signal: c.req.raw.signal, isForeign: isForeignPage(c, dependencies) };
    const content = await engine.webPeers.describe(infohash, new URL(c.req.url).hostname, options);
    return c.json({ ...content, sharing, iceServers }, 200, uncached);
  });
  app.get("/swarm/:infohash/peerjs/id", (c) => {
    if (sharing === "off") return c.text("the broadcaster has switched sharing off\n", 403, uncached);
    const id = rooms.assignId(infohashOf(c.req.param("infohash")), c.env.origin.remote.host);
    return id === undefined ? tooMany(c) : c.text(id, 200, uncached);
  });
  app.get("/swarm/:infohash/peerjs/peers", (c) => {
    const { host } = c.env.origin.remote;
    const ids = rooms.list(infohashOf(c.req.param("infohash")), c.req.query("id") ?? "", host);
    return ids === undefined ? tooMany(c) : c.json(ids, 200, uncached);
  });
  app.get("/swarm/:infohash/peerjs", (c) => {
    const { origin, acceptWebSocket } = c.env;
    if (acceptWebSocket === undefined) return c.text("expected a WebSocket\n", 426, { upgrade: "websocket" });
    const infohash = infohashOf(c.req.param("infohash"));
    return acceptWebSocket((socket) =>
      rooms.join(infohash, c.req.query("id") ?? "", origin.remote.host, socket),
    );
  });
  return app;
}

function infohashOf(text: string): Infohash {
  const infohash = parseInfohash(text);
  if (infohash === undefined)
    throw new SluiceError("bad_selector", "expected /swarm/<40 hexadecimal digits>");
  return infohash;
}
