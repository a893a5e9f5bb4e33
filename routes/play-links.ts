import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { ContentSelector } from "../src/engine/contract.ts";
import type { Library } from "../src/library/library.ts";
import { isOwnPage } from "./access.ts";
import { itemSelector } from "./control/content-params.ts";
import type { House, RouteEnv } from "./house.ts";
import { createPlaybackRoutes } from "./playback.ts";
import { mayReachPrivate } from "./private-urls.ts";

/** What names content in a query; a link names it in its path. */
const SELECTORS = ["content_id", "id", "infohash", "url", "magnet", "manifest_url"];

/**
 * `/play/infohash/<infohash>` and `/play/<playlist>/<item>`: links that say no more than they must, so that the URLs of other
 * servers, with what is secret in them, stay here. They play as `/ace/getstream` does, with the same parameters; with
 * `protocol=hls` as `/ace/manifest.m3u8`; `mode=download` leads to the file itself.
 *
 * CHOICE(play-links): the number of the playlist means nothing, for numbers of items are never used again. A link plays exactly
 * what it names: the auto search has its say where a list is exported.
 */
export function createPlayLinkRoutes(house: House & { readonly library: Library }): Hono<RouteEnv> {
  const playback = createPlaybackRoutes(house);
  playback.onError((thrown) => {
    throw thrown;
  });
  const play = (c: Context<RouteEnv>, selector: ContentSelector): Response | Promise<Response> => {
    if (c.req.query("mode") === "download") return toFile(c, house, selector);
    const url = new URL(c.req.url);
    url.pathname = c.req.query("protocol") === "hls" ? "/ace/manifest.m3u8" : "/ace/getstream";
    for (const name of SELECTORS) url.searchParams.delete(name);
    url.searchParams.set(...parameterOf(selector));
    const { headers, signal } = c.req.raw;
    return playback.fetch(new Request(url, { headers, signal }), c.env);
  };
  const app = new Hono<RouteEnv>();
  app.get("/play/infohash/:infohash", (c) => {
    const infohash = parseInfohash(c.req.param("infohash"));
    if (!infohash) throw new SluiceError("bad_selector", "expected /play/infohash/<40 hexadecimal digits>");
    return play(c, { kind: "infohash", infohash });
  });
  app.get("/play/:playlist{\\d+}/:item", async (c) => {
    // The answer tells what is in the user's list; media are open to pages of other sites, lists are not.
    if (!isOwnPage(c)) throw new SluiceError("access_denied", "not for other pages");
    // What clients hang on to it (`.m3u8`, `&.mp4`) means nothing.
    const id = Number(/^\d{1,15}/.exec(c.req.param("item"))?.[0] ?? Number.NaN);
    const item = await house.library.items.get(id);
    if (!item || item.deletedAt !== null) throw new SluiceError("unknown_item", `there is no item ${id}`);
    return play(c, itemSelector(item));
  });
  return app;
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
      throw new SluiceError("bad_selector", "a link names content, it does not hold it");
  }
}

/** The largest file that plays, as it is. */
async function toFile(c: Context<RouteEnv>, house: House, selector: ContentSelector): Promise<Response> {
  const options = { allowPrivateUrls: mayReachPrivate(c, house), signal: c.req.raw.signal };
  const { infohash, files, transportType } = await house.engine.inspect.describe(selector, options);
  if (transportType !== "bt")
    throw new SluiceError("unsupported_content", "only what comes from a swarm can be downloaded");
  const [largest] = [...files].sort((a, b) => Number(b.isPlayable) - Number(a.isPlayable) || b.size - a.size);
  if (!largest) throw new SluiceError("no_such_file", "the content has no files");
  const name = largest.name.split("/").at(-1)!.toWellFormed();
  return c.redirect(`/files/${infohash}/${largest.index}/${encodeURIComponent(name)}?download=1`, 302);
}
