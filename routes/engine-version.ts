import { type Context, Hono } from "hono";
import { failure, success } from "./envelope.ts";
import type { House, RouteEnv } from "./house.ts";

/**
 * CHOICE(version): deployed clients switch features by this number, so it says which generation of the interface is
 * spoken, not how old this program is; `code` = major · 1,000,000 + minor · 10,000 + patch · 100.
 */
const INTERFACE_VERSION = { version: "3.2.11", code: 3_021_100 };

/** `/webui/api/service` and the first methods of `/server/api` (interface: Control API). */
export function createEngineVersionRoutes(house: House): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const version = {
    ...INTERFACE_VERSION,
    platform: house.platform ?? "linux",
    engine: "Sluice",
    engine_version: house.version,
  };
  const results: Readonly<Record<string, () => unknown>> = {
    get_version: () => version,
    get_status: () => ({ playlist_loaded: true, version }),
    get_network_connection_status: () => ({ connected: true }),
  };
  const call = (c: Context<RouteEnv>, method: string | undefined): Response => {
    const result = results[Object.hasOwn(results, method ?? "") ? method! : ""];
    if (result) return success(c, "result", result());
    const message = method ? `unknown method ${method.slice(0, 60)}` : "missing method";
    // Errors are objects from version 2 on; a client that names no version knows strings only.
    const version = c.req.query("api_version");
    return failure(c, "result", version === "2" || version === "3" ? { message, code: 0 } : message);
  };
  for (const path of ["/webui/api/service", "/server/api", "/server/api/"])
    app.on(["GET", "POST"], path, (c) => call(c, c.req.query("method")));
  return app;
}
