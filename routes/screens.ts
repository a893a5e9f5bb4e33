import { Hono } from "hono";
import type { TextSocket, TextSocketHandlers } from "../src/runtime/contract.ts";
import { isOwnPage } from "./access.ts";
import type { RouteEnv } from "./house.ts";

/** Who lets open pages find each other. */
export interface Switchboard {
  freeCode(): string;
  join(code: string, socket: TextSocket): TextSocketHandlers;
}

/**
 * Where the start page's PeerJS looks for other screens: `…/id` gives it a code, the WebSocket carries what two pages
 * say until they are connected. For our own pages only: browsers let any page open a WebSocket to anywhere.
 */
export function createScreenRoutes(switchboard: Switchboard): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/app/screens/peerjs/id", (c) =>
    isOwnPage(c)
      ? c.text(switchboard.freeCode(), 200, { "cache-control": "no-store" })
      : c.text("access denied\n", 403),
  );
  app.get("/app/screens/peerjs", (c) => {
    if (!isOwnPage(c)) return c.text("access denied\n", 403);
    const accept = c.env.acceptWebSocket;
    if (accept === undefined) return c.text("expected a WebSocket\n", 426, { upgrade: "websocket" });
    return accept((socket) => switchboard.join(c.req.query("id") ?? "", socket));
  });
  return app;
}
