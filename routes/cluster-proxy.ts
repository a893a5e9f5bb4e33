import type { Context, MiddlewareHandler } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { Cluster, ClusterEngine, EngineProxy } from "../src/cluster/cluster-contract.ts";
import { baseUrl, pathPrefix } from "./http/access.ts";
import type { RouteEnv } from "./http/dependencies.ts";

/** `/engine/<id>/ace/…` on any engine is `/ace/…` on the engine with this id: playback only, never the control interface. */
const ENGINE_PATH = /^\/engine\/([\w-]{1,64})(\/(?:ace|hls|content|files|subtitles)\/.*)$/;

/** What another engine has to know of the player's request. */
const PASSED = [
  ...["accept", "range", "if-range", "if-none-match", "if-modified-since", "user-agent"],
  // With these the engine decides what pages of other sites may do.
  ...["origin", "referer", "sec-fetch-site", "access-control-request-private-network"],
];

/**
 * Requests `path` (with its query) from another engine, for the player that sent this request. URLs in the answer begin with this engine's
 * address and `/engine/<id>` if the other engine trusts this one as a proxy; redirects do so in any case. The body is passed on as the player
 * reads it, and closed when the player leaves. Rejects with `url_unreachable`.
 */
export async function throughEngine(
  c: Context<RouteEnv>,
  { engines, proxy }: { readonly engines: readonly ClusterEngine[]; readonly proxy: EngineProxy },
  engine: ClusterEngine,
  path: string,
): Promise<Response> {
  const base = new URL(baseUrl(c));
  const headers: Record<string, string> = {
    "x-forwarded-for": c.env.origin.remote.host,
    "x-forwarded-proto": base.protocol.slice(0, -1),
    "x-forwarded-host": base.host,
    "x-forwarded-prefix": `${pathPrefix(c)}/engine/${engine.id}`,
    connection: "close",
  };
  for (const name of PASSED) {
    const value = c.req.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const method = c.req.method === "HEAD" ? "HEAD" : "GET";
  const response = await proxy.request(new URL(engine.address + path), method, headers);
  const location = response.headers.get("location");
  const isHere = location?.startsWith(`${base.href.replace(/\/$/, "")}/engine/`);
  const target = isHere
    ? undefined
    : engines.find(({ address }) => address && location?.startsWith(`${address}/`));
  if (location && target)
    response.headers.set(
      "location",
      `${baseUrl(c)}/engine/${target.id}${location.slice(target.address.length)}`,
    );
  const { status } = response;
  const hasBody = method === "GET" && status !== 204 && status !== 304;
  if (!hasBody) await response.body.cancel();
  return new Response(hasBody ? response.body : null, { status, headers: response.headers });
}

/** Returns true if an engine has died and the others have not noticed yet. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof SluiceError && error.code === "url_unreachable";
}

/** Serves `/engine/<id>/…`. If that engine is gone, a player of a session gets a new one here. */
export function engineMiddleware(cluster: Cluster, proxy: EngineProxy): MiddlewareHandler<RouteEnv> {
  return async (c, next) => {
    const { pathname, search } = new URL(c.req.url);
    const [, id, path] = ENGINE_PATH.exec(pathname) ?? [];
    if (path === undefined || (c.req.method !== "GET" && c.req.method !== "HEAD")) return next();
    const engines = cluster.engines();
    const engine = engines.find((each) => each.id === id);
    if (engine && engine.address !== "")
      try {
        return await throughEngine(c, { engines, proxy }, engine, path + search);
      } catch (error) {
        if (!isUnreachable(error)) throw error;
      }
    const [, kind, text = ""] = /^\/ace\/(m|r)\/([^/]+)\//.exec(path) ?? [];
    const infohash = parseInfohash(text);
    if (kind === undefined || infohash === undefined) return c.text("this engine has stopped\n", 502);
    const start = kind === "m" ? "manifest.m3u8" : "getstream";
    return c.redirect(`${baseUrl(c)}/ace/${start}?infohash=${infohash}`, 302);
  };
}
