import { Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import { parseSegmentName, type SegmentName } from "../src/transfer/segment-source.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { answerRange } from "./range.ts";

/** The media type of each kind of segment. */
export const SEGMENT_TYPES: Readonly<Record<SegmentName["kind"], string>> = {
  ts: "video/mp2t",
  m4s: "video/iso.segment",
  mp4: "video/mp4",
  vtt: "text/vtt",
};

/** Serves HLS segments at `/ace/c/<infohash>/<name>`, such as `12.ts`. The query is ignored. */
export function createSegmentRoutes({ engine }: RouteDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/ace/c/:infohash/:name", async (c) => {
    const infohash = parseInfohash(c.req.param("infohash"));
    const name = parseSegmentName(c.req.param("name"));
    if (!infohash || !name)
      throw new SluiceError("no_such_segment", "expected /ace/c/<infohash>/<number>.ts");
    const type = { "content-type": SEGMENT_TYPES[name.kind], "cache-control": "no-store" };
    // A part that a manifest announces may not exist yet, and a HEAD request must not wait for it.
    if (c.req.method === "HEAD" && name.part !== undefined)
      return c.body(null, 200, { ...type, "accept-ranges": "bytes" });
    const segment = await engine.segmentBody(infohash, name, c.req.raw.signal);
    const { status, headers, range } = answerRange(c, segment.size);
    return new Response(range ? segment.open(range) : null, { status, headers: { ...type, ...headers } });
  });
  return app;
}
