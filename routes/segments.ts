import { Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { SegmentName } from "../src/engine/engine.ts";
import { byteStream } from "./byte-stream.ts";
import type { House, RouteEnv } from "./house.ts";
import { contentRange, parseRange } from "./range.ts";

const TYPES: Readonly<Record<SegmentName["kind"], string>> = {
  ts: "video/mp2t",
  m4s: "video/iso.segment",
  mp4: "video/mp4",
  vtt: "text/vtt",
};

/** `/ace/c/<infohash>/<number>.ts` and its kin; a query behind it means nothing. */
export function createSegmentRoutes({ engine }: House): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/ace/c/:infohash/:name", async (c) => {
    const infohash = parseInfohash(c.req.param("infohash"));
    const name = parseSegmentName(c.req.param("name"));
    if (!infohash || !name)
      throw new SluiceError("no_such_segment", "expected /ace/c/<infohash>/<number>.ts");
    const headers = {
      "content-type": TYPES[name.kind],
      "cache-control": "no-store",
      "accept-ranges": "bytes",
    };
    // The part that a manifest hints at is not there yet: a HEAD must not wait for it.
    if (c.req.method === "HEAD" && name.part !== undefined) return c.body(null, 200, headers);
    const bytes = await engine.segment(infohash, name, c.req.raw.signal);
    const range = parseRange(c.req.header("range"), bytes.length);
    if (range === "unsatisfiable")
      return c.body(null, 416, { ...headers, "content-range": contentRange(undefined, bytes.length) });
    const part = range === "whole" ? bytes : bytes.subarray(range.start, range.end);
    const length = { "content-length": String(part.length) };
    const body = c.req.method === "HEAD" ? null : byteStream(part);
    if (range === "whole") return new Response(body, { headers: { ...headers, ...length } });
    const partial = { ...headers, ...length, "content-range": contentRange(range, bytes.length) };
    return new Response(body, { status: 206, headers: partial });
  });
  return app;
}

/** Reads `12.ts`, `12.m4s`, `12.mp4`, these with the track of sound of its own (`12.a1.ts`), `12.p3.ts` (part 3 of a live
 * segment), and `12.s3.vtt` (subtitle track 3); undefined for anything else. */
function parseSegmentName(text: string): SegmentName | undefined {
  // Clients hang `&.mp4` and the like on URLs of all kinds.
  const match =
    /^(\d{1,12})\.(?:p(\d{1,4})\.(ts)|(?:a([1-9]\d{0,2})\.)?(ts|m4s|mp4)|s(\d{1,3})\.(vtt))(?:&.*)?$/.exec(
      text,
    );
  if (!match) return undefined;
  const [, number, part, partKind, audioTrack, kind, subtitleTrack, subtitles] = match;
  return {
    number: Number(number),
    kind: (partKind ?? kind ?? subtitles) as SegmentName["kind"],
    track: Number(audioTrack ?? subtitleTrack ?? 0),
    ...(part !== undefined && { part: Number(part) }),
  };
}
