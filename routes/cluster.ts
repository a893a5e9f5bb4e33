import type { Context, MiddlewareHandler } from "hono";
import { toHex } from "../src/base/bytes.ts";
import { parseInfohash } from "../src/base/ids.ts";
import { encodeUtf8 } from "../src/base/utf8.ts";
import type { Cluster, EngineProxy } from "../src/cluster/cluster-contract.ts";
import type { Engine } from "../src/engine/engine.ts";
import type { ContentSelector } from "../src/transfer/contract.ts";
import { isUnreachable, throughEngine } from "./cluster-proxy.ts";
import { baseUrl } from "./http/access.ts";
import type { RouteEnv } from "./http/dependencies.ts";
import { playbackParams, selectorOf } from "./http/params.ts";

/** Marks a request that another engine has sent here: it is served, so that two engines cannot send a player back and forth. */
const HOP = "_hop";

/** Paths that start playback. */
export const START_PATHS = ["/ace/getstream", "/ace/manifest.m3u8", "/hls/manifest.m3u8"];

/**
 * Sends requests for content that another engine has, or should play, to that engine: by a redirect, or through this one with `proxy`. If the proxy
 * does not reach it, this engine plays the content.
 */
export function clusterMiddleware(cluster: Cluster, proxy?: EngineProxy): MiddlewareHandler<RouteEnv> {
  return async (c, next) => {
    const content = c.req.query(HOP) === undefined ? await requestedContent(c) : undefined;
    const address = content === undefined ? undefined : await cluster.place(content);
    if (address === undefined) return next();
    const { pathname, search } = new URL(c.req.url);
    const engines = cluster.engines();
    const engine = engines.find((each) => each.address === address);
    const path = `${pathname}${search}&${HOP}=1`;
    if (!proxy || !engine) return c.redirect(address + path, 302);
    try {
      return await throughEngine(c, { engines, proxy }, engine, path);
    } catch (error) {
      if (!isUnreachable(error)) throw error;
      return next();
    }
  };
}

/**
 * If this engine is draining, redirects the players of its sessions to another engine, which starts a session for them. Segments have the same
 * numbers on both, so HLS continues.
 */
export function drainMiddleware(
  cluster: Cluster,
  engine: Engine,
  proxy?: EngineProxy,
): MiddlewareHandler<RouteEnv> {
  return async (c, next) => {
    if (!cluster.isDraining) return next();
    const infohash = parseInfohash(c.req.param("infohash") ?? "");
    const session = infohash && engine.session(infohash, (c.req.param("key") ?? "").replace(/\.m3u8$/, ""));
    const address = infohash && session && !session.isDirect ? await cluster.place(infohash) : undefined;
    if (!address || !session) return next();
    const { fileIndex } = await session.info();
    const path = session.output === "hls" ? START_PATHS[1] : START_PATHS[0];
    const id = proxy && cluster.engines().find((each) => each.address === address)?.id;
    const start = id === undefined ? address : `${baseUrl(c)}/engine/${id}`;
    return c.redirect(`${start}${path}?infohash=${infohash}&_idx=${fileIndex}&${HOP}=1`, 302);
  };
}

/**
 * Returns a key for the content that the query selects; undefined if the route has to report an error. Different selectors of the same content, such as
 * its content id and its infohash, have different keys.
 */
async function requestedContent(c: Context<RouteEnv>): Promise<string | undefined> {
  if (c.req.method !== "GET" && c.req.method !== "HEAD") return undefined;
  const query = new URL(c.req.url).searchParams;
  const manifestUrl = c.req.path === START_PATHS[2] ? query.get("manifest_url")?.trim() : undefined;
  if (manifestUrl) return nameOf({ kind: "url", url: manifestUrl });
  const params = playbackParams.safeParse(Object.fromEntries(query));
  // The route reports what is wrong.
  if (!params.success) return undefined;
  const selector = selectorOf(params.data, query);
  return selector && nameOf(selector);
}

async function nameOf(selector: ContentSelector): Promise<string | undefined> {
  switch (selector.kind) {
    case "infohash":
      return selector.infohash;
    case "content_id":
      return `id-${selector.contentId}`;
    case "magnet": {
      const infohash = /[?&]xt=urn:btih:([0-9a-f]{40})(?:&|$)/i.exec(selector.magnet)?.[1];
      return infohash?.toLowerCase() ?? `magnet-${await digestOf(selector.magnet)}`;
    }
    case "url":
      return `url-${await digestOf(selector.url)}`;
    case "transport_file":
      return undefined;
  }
}

async function digestOf(text: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", encodeUtf8(text)))).slice(0, 40);
}
