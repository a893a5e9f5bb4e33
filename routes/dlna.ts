import { type Context, Hono } from "hono";
import { contentFeatures } from "../src/base/content-features.ts";
import { SluiceError } from "../src/base/errors.ts";
import type { MediaServer } from "../src/devices/media-server-contract.ts";
import type { Library } from "../src/library/library.ts";
import { createCatalog } from "./dlna-catalog.ts";
import { baseUrl } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { limitedBytes } from "./http/request-body.ts";
import { createPlayLinkRoutes } from "./play-links.ts";
import { createRecordingRoutes } from "./recordings.ts";
import { createSessionRoutes, TRANSPORT_STREAM } from "./session.ts";

/** A call has a few hundred bytes. */
const MAX_CALL_BYTES = 16 * 1024;
const XML = { "content-type": 'text/xml; charset="utf-8"', "cache-control": "no-store" };

/**
 * Serves the DLNA media server: `/dlna/description.xml`, the descriptions and calls of its services, and `/dlna/media/…`, which plays
 * without a redirect, because televisions do not follow one.
 */
export function createDlnaRoutes(
  dependencies: RouteDependencies & { readonly library: Library; readonly mediaServer: MediaServer },
): Hono<RouteEnv> {
  const { library, recordings, mediaServer } = dependencies;
  const media = new Hono<RouteEnv>();
  media.route("/", createPlayLinkRoutes(dependencies));
  media.route("/", createSessionRoutes(dependencies));
  if (recordings) media.route("/", createRecordingRoutes(recordings));
  media.onError((thrown) => {
    throw thrown;
  });
  const app = new Hono<RouteEnv>();
  app.get("/dlna/description.xml", (c) => c.body(mediaServer.description(), 200, XML));
  app.get("/dlna/:file{\\w+\\.xml}", (c) => {
    const text = mediaServer.service(c.req.param("file").slice(0, -".xml".length));
    return text === undefined ? c.notFound() : c.body(text, 200, XML);
  });
  app.post("/dlna/control/:service", async (c) => {
    const { body } = c.req.raw;
    const bytes = body ? await limitedBytes(body, MAX_CALL_BYTES, tooLong) : new Uint8Array();
    const catalog = createCatalog({ library, recordings, base: baseUrl(c) });
    const answer = await mediaServer.call(c.req.param("service"), bytes, catalog);
    return answer === undefined ? c.notFound() : c.body(answer.xml, answer.status, { ...XML, ext: "" });
  });
  app.get("/dlna/media/:name", async (c) => {
    const [, kind, id] = /^(item|recording)-(\d{1,15})\.ts$/.exec(c.req.param("name")) ?? [];
    if (kind === undefined) throw new SluiceError("no_such_file", "expected /dlna/media/item-<id>.ts");
    const item = kind === "item" ? await library.items.get(Number(id)) : undefined;
    const isLive = kind === "item" && item?.isLive !== 0;
    const headers = {
      "contentfeatures.dlna.org": contentFeatures(isLive),
      "transfermode.dlna.org": "Streaming",
    };
    // A television asks for the head of every channel that it lists: none of them is started for that.
    if (c.req.method === "HEAD" && isLive)
      return c.body(null, 200, { ...TRANSPORT_STREAM, ...headers, ...TYPE });
    // A television reads the head, the end and the middle of a film at the same time: all of it is one session.
    const pid = encodeURIComponent(`dlna-${c.env.origin.remote.host}-${id}`);
    const path = kind === "item" ? `/play/0/${id}?container=ts&pid=${pid}` : `/recordings/${id}.ts`;
    const response = await withoutRedirect(c, media, path);
    const all = new Headers(response.headers);
    for (const [name, value] of Object.entries({ ...headers, ...(response.ok && TYPE) }))
      all.set(name, value);
    return new Response(response.body, { status: response.status, headers: all });
  });
  return app;
}

/** The type that the catalog announces. */
const TYPE = { "content-type": "video/mpeg" };

/** Redirects of this engine: from a play link to its session, and from there to the file. */
const MAX_REDIRECTS = 2;

/** Answers a request for a path of this engine as `routes` do; a redirect within this engine is followed. */
async function withoutRedirect(
  c: Context<RouteEnv>,
  routes: Hono<RouteEnv>,
  path: string,
): Promise<Response> {
  const { headers, signal, method } = c.req.raw;
  let url = new URL(path, c.req.url);
  for (let left = MAX_REDIRECTS; ; left--) {
    const response = await routes.fetch(new Request(url, { headers, signal, method }), c.env);
    const location = response.headers.get("location");
    if (response.status !== 302 || location === null || left === 0) return response;
    await response.body?.cancel();
    const { pathname, search } = new URL(location, url);
    url = new URL(pathname + search, c.req.url);
  }
}

function tooLong(): SluiceError {
  return new SluiceError("too_large", `a call has at most ${MAX_CALL_BYTES} bytes`);
}
