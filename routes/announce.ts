import { type Context, Hono } from "hono";
import { isOwnPage } from "./access.ts";
import type { RouteEnv, TrackerDesk } from "./house.ts";

/**
 * Our own tracker: `/announce` over HTTP and as a WebSocket, and `/scrape`. The viewers of a broadcast come here, from
 * wherever they are (docs/design/tracker.md).
 */
export function createTrackerRoutes(tracker: TrackerDesk): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/announce", (c) => {
    if (!isOwnPage(c) && !tracker.isOpen) return c.text("access denied\n", 403);
    const accept = c.env.acceptWebSocket;
    if (accept !== undefined) return accept((socket) => tracker.join(askerOf(c), socket));
    return answer(c, tracker.announce(queryOf(c), askerOf(c)));
  });
  app.get("/scrape", (c) => {
    if (!isOwnPage(c) && !tracker.isOpen) return c.text("access denied\n", 403);
    return answer(c, tracker.scrape(queryOf(c), askerOf(c)));
  });
  return app;
}

function askerOf({ env }: Context<RouteEnv>): Parameters<TrackerDesk["announce"]>[1] {
  return { host: env.origin.remote.host, isForeign: env.isForeign ?? true };
}

/** As it was sent: infohashes in it are no text. */
function queryOf({ req }: Context<RouteEnv>): string {
  const at = req.url.indexOf("?");
  return at < 0 ? "" : req.url.slice(at + 1);
}

function answer(c: Context<RouteEnv>, bytes: Uint8Array<ArrayBuffer>): Response {
  return c.body(bytes, 200, { "content-type": "text/plain", "cache-control": "no-store" });
}
