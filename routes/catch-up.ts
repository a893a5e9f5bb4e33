import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import type { UnixSeconds } from "../src/base/time.ts";
import type { CatchUp, KeptMedia, TimeSpan } from "../src/catch-up/catch-up-contract.ts";
import type { Item } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import { baseUrl } from "./http/access.ts";
import type { RouteEnv } from "./http/dependencies.ts";
import { textResponse } from "./http/responses.ts";
import { answerRange } from "./range.ts";
import { TRANSPORT_STREAM } from "./session.ts";

/** The form in which past media is played. */
export type CatchUpForm = "ts" | "m3u8";

/** What the routes need. */
interface CatchUpServices {
  readonly catchUp: CatchUp;
  readonly library: Pick<Library, "items" | "guide">;
}

/** Played if a request names no duration and no guide knows the programme. */
const DEFAULT_SECONDS = 2 * 3_600;
/** The longest time of one request. */
const MAX_SECONDS = 24 * 3_600;
/** A part of a file does not change. */
const SEGMENT_HEADERS = { "content-type": "video/mp2t", "cache-control": "private, max-age=3600" };

/**
 * Serves the kept media of channels: `/catch-up/<item>.ts` and `.m3u8` with `start` (or `utc`) and `duration` (or `end`), in UNIX time and
 * seconds. Without a duration, the programme at that time is played. Media of the past has a length and Range; media of a time
 * that is not over follows the channel. Like the exported playlist it needs no token, because players have none; the access
 * middleware refuses pages of other sites.
 */
export function createCatchUpRoutes(services: CatchUpServices): Hono<RouteEnv> {
  const { catchUp, library } = services;
  const app = new Hono<RouteEnv>();
  app.get("/catch-up/:name{\\d{1,15}\\.(?:ts|m3u8)}", async (c) => {
    const [id, form] = c.req.param("name").split(".") as [string, CatchUpForm];
    const item = await itemOf(library, id);
    return catchUpResponse(c, services, item, await spanOf(c, library, item), form);
  });
  app.get("/catch-up/:id{\\d{1,15}}/:block{\\d{1,15}}/:range{\\d{1,15}-\\d{1,15}\\.ts}", async (c) => {
    const item = await itemOf(library, c.req.param("id"));
    const [start = 0, end = 0] = c.req.param("range").slice(0, -3).split("-").map(Number);
    const stream = catchUp.file(item, Number(c.req.param("block")), { start, end });
    if (stream === undefined) throw new SluiceError("no_such_segment", "this part is not kept any more");
    const headers = { ...SEGMENT_HEADERS, "content-length": String(end - start) };
    if (c.req.method !== "HEAD")
      return new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>, { headers });
    await stream.cancel();
    return new Response(null, { headers });
  });
  return app;
}

/** Plays what is kept of a time. Rejects with `no_such_file` if that is nothing. */
export async function catchUpResponse(
  c: Context<RouteEnv>,
  { catchUp }: CatchUpServices,
  item: Item,
  span: TimeSpan,
  form: CatchUpForm,
): Promise<Response> {
  const media = await catchUp.open(item, span);
  if (media === undefined) throw new SluiceError("no_such_file", missingText(catchUp, item));
  if (form === "m3u8") return manifestResponse(c, item, media);
  const gaps = { "x-sluice-gaps": gapsText(catchUp, item, span) };
  if (media.isGrowing) {
    if (c.req.method === "HEAD") return new Response(null, { headers: { ...TRANSPORT_STREAM, ...gaps } });
    const stream = catchUp.follow(item, span) as ReadableStream<Uint8Array<ArrayBuffer>>;
    return new Response(stream, { headers: { ...TRANSPORT_STREAM, ...gaps } });
  }
  const { status, headers, range } = answerRange(c, media.bytes);
  const all = { "content-type": "video/mp2t", "cache-control": "no-store", ...headers, ...gaps };
  const body = range && (media.read(range) as ReadableStream<Uint8Array<ArrayBuffer>>);
  return new Response(body ?? null, { status, headers: all });
}

/** Returns the time that starts at `start` (UNIX seconds) and lasts `seconds`. Throws `bad_parameter` if it is too long or in the future. */
export function spanFrom(start: number, seconds: number): TimeSpan {
  const isValid = start > 0 && seconds > 0 && seconds <= MAX_SECONDS && 1000 * start < Date.now();
  if (!isValid)
    throw new SluiceError(
      "bad_parameter",
      "expected a start in the past (UNIX time) and a duration of at most 24 hours",
    );
  return { startMs: 1000 * start, endMs: 1000 * (start + seconds) };
}

function manifestResponse(c: Context<RouteEnv>, item: Item, media: KeptMedia): Response {
  const base = `${baseUrl(c)}/catch-up/${item.id}`;
  const manifest = media.manifest(({ block, range }) => `${base}/${block}/${range.start}-${range.end}.ts`);
  return textResponse(c, manifest, "application/vnd.apple.mpegurl");
}

async function itemOf({ items }: Pick<Library, "items">, id: string): Promise<Item> {
  const item = await items.get(Number(id));
  if (item === undefined || item.deletedAt !== null)
    throw new SluiceError("unknown_item", `there is no item ${id}`);
  return item;
}

async function spanOf(
  c: Context<RouteEnv>,
  { guide }: Pick<Library, "guide">,
  item: Item,
): Promise<TimeSpan> {
  const start = secondsOf(c.req.query("start") ?? c.req.query("utc"));
  const duration = secondsOf(c.req.query("duration"));
  const end = secondsOf(c.req.query("end"));
  if (duration > 0) return spanFrom(start, duration);
  if (end > 0) return spanFrom(start, end - start);
  const [programme] = await guide.programmes(item, start as UnixSeconds, (start + 1) as UnixSeconds, 1);
  return spanFrom(start, programme ? programme.stop - start : DEFAULT_SECONDS);
}

/** Players send whole seconds; some send fractions. */
function secondsOf(text = ""): number {
  return /^\d{1,12}(\.\d{1,9})?$/.test(text) ? Math.floor(Number(text)) : 0;
}

function missingText(catchUp: CatchUp, item: Item): string {
  if (!catchUp.isKept(item)) return "catch-up is not on for this channel";
  const spans = catchUp.spans(item, { startMs: 0, endMs: Number.POSITIVE_INFINITY });
  const [first, last] = [spans[0], spans.at(-1)];
  if (!first || !last) return "nothing of this channel is kept yet";
  const text = (ms: number) => new Date(ms).toISOString().slice(0, 16);
  return `nothing of this time is kept; this channel has ${text(first.startMs)} to ${text(last.endMs)} UTC`;
}

/** Returns the seconds of a time that are missing, such as `60-120, 300-360` from its start. */
function gapsText(catchUp: CatchUp, item: Item, { startMs, endMs }: TimeSpan): string {
  const untilMs = Math.min(endMs, Date.now());
  const gaps: string[] = [];
  let atMs = startMs;
  for (const span of [...catchUp.spans(item, { startMs, endMs }), { startMs: untilMs, endMs: untilMs }]) {
    const [from, to] = [atMs - startMs, span.startMs - startMs].map((ms) => Math.round(ms / 1000)) as [
      number,
      number,
    ];
    if (to - from > 2) gaps.push(`${from}-${to}`);
    atMs = span.endMs;
  }
  return gaps.join(", ");
}
