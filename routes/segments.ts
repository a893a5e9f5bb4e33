import { Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import { type SegmentName, VARIANT_TRACKS } from "../src/transfer/segment-source.ts";
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

/**
 * Parses the file name of a segment: `12.ts`, `12.m4s`, `12.mp4`, each also of a separate audio track (`12.a1.ts`),
 * `12.p3.ts` (part 3 of a live segment), `12.v1.ts` and `12.v1.p3.ts` (quality 1 of a broadcast), and `12.s3.vtt` (subtitle track 3). Returns undefined for anything else.
 */
export function parseSegmentName(text: string): SegmentName | undefined {
  // Some clients append an ending such as `&.mp4` to every URL.
  const match =
    /^(\d{1,12})\.(?:v([1-9])\.)?(?:p(\d{1,4})\.(ts)|(?:a([1-9]\d{0,2})\.)?(ts|m4s|mp4)|s(\d{1,3})\.(vtt))(?:&.*)?$/.exec(
      text,
    );
  if (!match) return undefined;
  const [, number, variant = 0, part, partKind, audioTrack, kind, subtitleTrack, subtitles] = match;
  return {
    number: Number(number),
    kind: (partKind ?? kind ?? subtitles) as SegmentName["kind"],
    track: VARIANT_TRACKS * Number(variant) + Number(audioTrack ?? subtitleTrack ?? 0),
    ...(part !== undefined && { part: Number(part) }),
  };
}
