import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import { encodeUtf8 } from "../src/base/utf8.ts";
import type { Cacheable, SharedContent } from "../src/playback/contract.ts";
import { parseSegmentName } from "../src/transfer/segment-source.ts";
import { isForeignPage } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { answerRange } from "./range.ts";
import { SEGMENT_TYPES } from "./segments.ts";
import { MANIFEST_TYPE, renditionOf } from "./session.ts";
import { createSignedRoutes } from "./signed.ts";

const EXPECTED =
  "expected /live/<infohash>/index.m3u8, /vod/<infohash>/<file index>/index.m3u8 or /vod/<infohash>/<file index>/aac/index.m3u8";

/**
 * Serves HLS without sessions in its URLs, for caches in front of the engine: `/live/<infohash>/index.m3u8`,
 * `/vod/<infohash>/<file index>/index.m3u8`, `/vod/<infohash>/<file index>/aac/index.m3u8` with the audio as AAC, too, and the segments beside
 * them. With a key, only signed links.
 */
export function createSharedRoutes(dependencies: RouteDependencies): Hono<RouteEnv> {
  const { engine } = dependencies;
  const app = new Hono<RouteEnv>();

  const serve = async (c: Context<RouteEnv>): Promise<Response> => {
    const content = contentOf(c, isForeignPage(c, dependencies));
    const name = c.req.param("name") ?? "";
    const { signal } = c.req.raw;
    if (name === "index.m3u8") {
      const { text, ...cacheable } = await engine.shared.manifest(content, renditionOf(c), signal);
      const bytes = encodeUtf8(text);
      if (isHeld(c, cacheable)) return c.body(null, 304, cacheHeaders(cacheable));
      const headers = { "content-type": MANIFEST_TYPE, "content-length": String(bytes.length) };
      return c.body(bytes, 200, { ...headers, ...cacheHeaders(cacheable) });
    }
    const segment = parseSegmentName(name);
    // Manifests of shared URLs list no parts.
    if (!segment || segment.part !== undefined) throw new SluiceError("no_such_segment", EXPECTED);
    const { body, ...cacheable } = await engine.shared.segment(content, segment, signal);
    const common = cacheHeaders(cacheable);
    if (isHeld(c, cacheable)) return c.body(null, 304, common);
    const { status, headers, range } = answerRange(c, body.size, common.etag);
    const type = { "content-type": SEGMENT_TYPES[segment.kind] };
    return new Response(range ? body.open(range) : null, {
      status,
      headers: { ...type, ...common, ...headers },
    });
  };
  const { signedLinks } = dependencies;
  if (signedLinks) {
    const unixSeconds = () => Math.floor(Date.now() / 1000);
    app.route("/", createSignedRoutes(signedLinks, unixSeconds, serve));
  }
  const open = signedLinks ? refuseUnsigned : serve;
  app.get("/live/:infohash/:name", open);
  app.get("/vod/:infohash/:file/:name", open);
  app.get("/vod/:infohash/:file/:audio/:name", open);
  return app;
}

function refuseUnsigned(): never {
  throw new SluiceError("access_denied", "this engine serves signed links only");
}

function contentOf(c: Context<RouteEnv>, isForeign: boolean): SharedContent {
  const infohash = parseInfohash(c.req.param("infohash") ?? "");
  if (!infohash) throw new SluiceError("bad_selector", EXPECTED);
  const file = c.req.param("file");
  if (file !== undefined && !/^\d{1,6}$/.test(file)) throw new SluiceError("no_such_file", EXPECTED);
  const audio = c.req.param("audio");
  if (audio !== undefined && audio !== "aac") throw new SluiceError("no_such_segment", EXPECTED);
  const fileIndex = file === undefined ? undefined : Number(file);
  return { infohash, fileIndex, convertsAudio: audio === "aac", isForeign };
}

/** The headers that tell caches how long they may keep a response (RFC 9111, RFC 8246). */
function cacheHeaders({ tag, freshSeconds, isImmutable }: Cacheable) {
  const immutable = isImmutable ? ", immutable" : "";
  return { etag: `"${tag}"`, "cache-control": `public, max-age=${freshSeconds}${immutable}` };
}

/** Whether the client has these bytes already (RFC 9110 13.1.2, weak comparison). */
function isHeld(c: Context<RouteEnv>, { tag }: Cacheable): boolean {
  const tags = (c.req.header("if-none-match") ?? "")
    .split(",")
    .map((each) => each.trim().replace(/^W\//, ""));
  return tags.includes(`"${tag}"`);
}
