import { type Context, Hono } from "hono";
import type { RouteEnv } from "./http/dependencies.ts";
import { SIGNED, type SignedLinks } from "./http/signed-links.ts";

/** A cache may keep the answer that a link is valid for this long. */
const MAX_FRESH_SECONDS = 60;

/**
 * Serves `/signed/<expires>/<signature>` followed by the path of `serve`, such as `/live/<infohash>/index.m3u8`. URLs in manifests are relative, so
 * segments have the same signature. The name `access` answers 204 if the link is valid, for caches that ask (`auth_request` of nginx).
 */
export function createSignedRoutes(
  links: SignedLinks,
  unixSeconds: () => number,
  serve: (c: Context<RouteEnv>) => Promise<Response>,
): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const answer = async (c: Context<RouteEnv>): Promise<Response> => {
    const [expires, file, name] = ["expires", "file", "name"].map((each) => c.req.param(each) ?? "");
    const infohash = c.req.param("infohash")?.toLowerCase();
    const content = file === "" ? `/live/${infohash}` : `/vod/${infohash}/${file}`;
    await links.verify(content, expires!, c.req.param("signature") ?? "");
    if (name !== "access") return serve(c);
    const freshSeconds = Math.min(MAX_FRESH_SECONDS, Number(expires) - unixSeconds());
    return c.body(null, 204, { "cache-control": `public, max-age=${freshSeconds}` });
  };
  app.get(`${SIGNED}/:expires/:signature/live/:infohash/:name`, answer);
  app.get(`${SIGNED}/:expires/:signature/vod/:infohash/:file/:name`, answer);
  return app;
}
