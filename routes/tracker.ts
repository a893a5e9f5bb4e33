import { type Context, Hono } from "hono";
import { isSameOrigin } from "./http/access.ts";
import type { RouteEnv, TrackerService } from "./http/dependencies.ts";

/**
 * Serves the engine's own tracker: `/announce` over HTTP (BEP 3) and as a WebSocket, and `/scrape` (BEP 48). The viewers
 * of a broadcast announce here from any address (docs/design/tracker.md).
 */
export function createTrackerRoutes(tracker: TrackerService): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/announce", (c) => {
    if (!isSameOrigin(c) && !tracker.isOpen) return c.text("access denied\n", 403);
    const accept = c.env.acceptWebSocket;
    if (accept !== undefined) return accept((socket) => tracker.join(clientOf(c), socket));
    return trackerResponse(c, tracker.announce(queryOf(c), clientOf(c)));
  });
  app.get("/scrape", (c) => {
    if (!isSameOrigin(c) && !tracker.isOpen) return c.text("access denied\n", 403);
    return trackerResponse(c, tracker.scrape(queryOf(c), clientOf(c)));
  });
  return app;
}

function clientOf({ env }: Context<RouteEnv>): Parameters<TrackerService["announce"]>[1] {
  return { host: env.origin.remote.host, isForeign: env.isForeign ?? true };
}

/** Returns the raw query, undecoded: the infohashes in it are binary, not text. */
function queryOf({ req }: Context<RouteEnv>): string {
  const at = req.url.indexOf("?");
  return at < 0 ? "" : req.url.slice(at + 1);
}

function trackerResponse(c: Context<RouteEnv>, bytes: Uint8Array<ArrayBuffer>): Response {
  return c.body(bytes, 200, { "content-type": "text/plain", "cache-control": "no-store" });
}
