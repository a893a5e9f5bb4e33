import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import { playOrder } from "../src/base/play-order.ts";
import type { Item } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import type { ContentSelector } from "../src/transfer/contract.ts";
import { itemSelector } from "./control/content-params.ts";
import { allowsPrivateUrls, isForeignPage, isSameOrigin, pathPrefix } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { badParameter, playbackParams } from "./http/params.ts";
import { answerStart, createPlaybackRoutes, playbackRequest, SETTLE_MS } from "./playback.ts";
import { connect, TRANSPORT_STREAM } from "./session.ts";

/** The query parameters that name content; a play link names it in its path instead. */
const SELECTORS = ["content_id", "id", "infohash", "url", "magnet", "manifest_url"];

/** Sources of one channel that are tried. */
export const MAX_SOURCES = 8;

/**
 * Serves `/play/infohash/<infohash>` and `/play/<playlist>/<item>`: links that contain no URL of another server, and so
 * reveal no secrets in it. They take the parameters of `/ace/getstream` and play the same way; `protocol=hls` plays as
 * `/ace/manifest.m3u8` does; `mode=download` redirects to the file itself.
 *
 * CHOICE(play-links): the playlist number is ignored, because item ids are never reused. If auto search is on, the link
 * plays the best other source of the item's group, as exported playlists do, unless `skip_autosearch=1`. A live channel of several
 * sources is played as one stream that continues with the next source when one fails.
 */
export function createPlayLinkRoutes(
  dependencies: RouteDependencies & { readonly library: Library },
): Hono<RouteEnv> {
  const playback = createPlaybackRoutes(dependencies);
  playback.onError((thrown) => {
    throw thrown;
  });
  const play = (c: Context<RouteEnv>, selector: ContentSelector): Response | Promise<Response> => {
    if (c.req.query("mode") === "download") return redirectToFile(c, dependencies, selector);
    const url = new URL(c.req.url);
    url.pathname = c.req.query("protocol") === "hls" ? "/ace/manifest.m3u8" : "/ace/getstream";
    for (const name of SELECTORS) url.searchParams.delete(name);
    url.searchParams.set(...parameterOf(selector));
    const { headers, signal } = c.req.raw;
    const contentHeaders = selector.kind === "url" ? selector.headers : undefined;
    const isOwnLink = selector.kind === "magnet" && selector.isOwn;
    return playback.fetch(new Request(url, { headers, signal }), { ...c.env, contentHeaders, isOwnLink });
  };
  const app = new Hono<RouteEnv>();
  app.get("/play/infohash/:infohash", (c) => {
    const infohash = parseInfohash(c.req.param("infohash"));
    if (!infohash) throw new SluiceError("bad_selector", "expected /play/infohash/<40 hexadecimal digits>");
    return play(c, { kind: "infohash", infohash });
  });
  app.get("/play/:playlist{\\d+}/:item", async (c) => {
    // The response reveals the user's playlist, which pages of other sites may not read, although they may read media.
    if (!isSameOrigin(c)) throw new SluiceError("access_denied", "not available to pages of other sites");
    // Some clients append an ending (`.m3u8`, `&.mp4`), which is ignored.
    const id = Number(/^\d{1,15}/.exec(c.req.param("item"))?.[0] ?? Number.NaN);
    const item = await dependencies.library.items.get(id);
    if (!item || item.deletedAt !== null) throw new SluiceError("unknown_item", `there is no item ${id}`);
    const isOnlyItem = c.req.query("skip_autosearch") === "1";
    const sources = isOnlyItem ? [item] : await dependencies.library.sourcesOf(item, MAX_SOURCES);
    const isChannel = c.req.query("mode") === undefined && item.isLive === 1 && sources.length > 1;
    if (isChannel) return playChannel(c, dependencies, sources);
    return play(c, itemSelector(sources[0]!));
  });
  return app;
}

/** What the request of a player does not say about the sources: files, formats, and its own session. */
const OF_SOURCES = {
  container: "auto",
  fileIndex: undefined,
  selectedFiles: undefined,
  nextFiles: undefined,
  outputFormats: { live: "auto", vod: "auto" },
  playerId: undefined,
  client: undefined,
  clientSessionId: -1,
  wantsEvents: false,
  wantsStops: false,
  isRestart: false,
} as const;

/**
 * Plays the sources of a channel as one stream: MPEG-TS without a redirect, so that its URL stays valid whichever source plays; HLS and
 * JSON as a session.
 */
async function playChannel(
  c: Context<RouteEnv>,
  dependencies: RouteDependencies,
  items: readonly Item[],
): Promise<Response> {
  const parsed = playbackParams.safeParse(c.req.queries());
  if (!parsed.success) throw badParameter(parsed.error);
  const output: "hls" | "ts" = c.req.query("protocol") === "hls" ? "hls" : "ts";
  const isStream = output === "ts" && parsed.data.format !== "json";
  if (isStream && c.req.method === "HEAD") return c.body(null, 200, TRANSPORT_STREAM);
  const requestOf = (item: Item) => playbackRequest(c, dependencies, parsed.data, "ts", itemSelector(item));
  const sources = items.map((item) => ({
    name: `item ${item.id}`,
    request: { ...requestOf(item), ...OF_SOURCES },
  }));
  const title = items[0]!.displayTitle || items[0]!.title;
  const { signal } = c.req.raw;
  if (!isStream) {
    // The sources convert the audio and refuse peers.
    const ofChannel = { audioConversion: undefined, withoutPeers: false, container: "auto" } as const;
    const request = { ...requestOf(items[0]!), ...ofChannel, fileIndex: undefined, output } as const;
    const wait = { withinMs: SETTLE_MS, signal };
    const session = await dependencies.engine.beginChannel({ title, sources }, connect, request, wait);
    return answerStart(c, parsed.data, session, SETTLE_MS);
  }
  const stream = await dependencies.engine.playChannel(sources, connect, { title, signal });
  return c.body(stream as ReadableStream<Uint8Array<ArrayBuffer>>, 200, TRANSPORT_STREAM);
}

function parameterOf(selector: ContentSelector): [name: string, value: string] {
  switch (selector.kind) {
    case "content_id":
      return ["content_id", selector.contentId];
    case "infohash":
      return ["infohash", selector.infohash];
    case "magnet":
      return ["magnet", selector.magnet];
    case "url":
      return ["url", selector.url];
    case "transport_file":
      throw new SluiceError("bad_selector", "a play link cannot contain a transport file");
  }
}

/** Redirects to the file that the other links of this content play. */
async function redirectToFile(
  c: Context<RouteEnv>,
  dependencies: RouteDependencies,
  selector: ContentSelector,
): Promise<Response> {
  const options = {
    allowPrivateUrls: allowsPrivateUrls(c, dependencies),
    isForeign: isForeignPage(c, dependencies),
    signal: c.req.raw.signal,
  };
  const { infohash, files, transportType } = await dependencies.engine.inspect.describe(selector, options);
  if (transportType !== "bt")
    throw new SluiceError("unsupported_content", "only content of a swarm can be downloaded");
  const [first] = playOrder(files);
  if (!first) throw new SluiceError("no_such_file", "the content has no files");
  const name = first.name.split("/").at(-1)!.toWellFormed();
  return c.redirect(
    `${pathPrefix(c)}/files/${infohash}/${first.index}/${encodeURIComponent(name)}?download=1`,
    302,
  );
}
