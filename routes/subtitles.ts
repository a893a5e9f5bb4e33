import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { FilmPictures } from "../src/playback/contract.ts";
import { BodySlots, senderOf } from "./control/body-slots.ts";
import { baseUrl, isForeignPage } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { limitedBytes } from "./http/request-body.ts";

type Described = Pick<FilmPictures, "language" | "title" | "codec" | "isForced">;

/** A request for pictures returns up to a minute. */
const MAX_PICTURE_SECONDS = 60;
/** Converted text cannot contain a script, but its source is untrusted. */
const HEADERS = { "cache-control": "no-store", "content-security-policy": "sandbox; default-src 'none'" };
const MAX_FILE_BYTES = 10_000_000;
/** A conversion can use 150 MB of memory. */
const UPLOADS = { total: 2, perSender: 1 };
/** Subtitles that are further off belong to another film. */
const MAX_DELAY_SECONDS = 600;
const TYPES = { vtt: "text/vtt; charset=utf-8", srt: "application/x-subrip; charset=utf-8" } as const;

/**
 * Serves the text subtitles of a film to players that load them from an address: `/subtitles/<infohash>/<index>` lists them,
 * `/subtitles/<infohash>/<index>/<number>.vtt` and `.srt` convert one; `?delay=1.5` shows it
 * that many seconds later. `/subtitles/<infohash>/<index>/<number>.json?from=10&to=20` returns the pictures of subtitles that are
 * pictures, as {@link FilmPictures}. `POST /app/subtitles?name=…` converts a subtitle file to WebVTT.
 */
export function createSubtitleRoutes(dependencies: RouteDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const open = (c: Context<RouteEnv>) => {
    const infohash = parseInfohash(c.req.param("infohash") ?? "");
    const index = c.req.param("index") ?? "";
    if (!infohash || !/^\d{1,6}$/.test(index))
      throw new SluiceError("bad_selector", "expected /subtitles/<infohash>/<index>");
    const options = { signal: c.req.raw.signal, isForeign: isForeignPage(c, dependencies) };
    return dependencies.engine.subtitles(infohash, Number(index), options);
  };
  app.get("/subtitles/:infohash/:index", async (c) => {
    const lease = await open(c);
    lease.release();
    const place = `${baseUrl(c)}/subtitles/${c.req.param("infohash")}/${c.req.param("index")}`;
    const described = ({ language, title, codec, isForced }: Described) => ({
      language,
      title: title ?? null,
      codec,
      forced: isForced,
    });
    const subtitles = lease.subtitles.map((one) => ({
      ...described(one),
      vtt: `${place}/${one.number}.vtt`,
      srt: `${place}/${one.number}.srt`,
    }));
    const pictures = lease.pictures.map((one) => ({
      ...described(one),
      json: `${place}/${one.number}.json`,
    }));
    return c.json({ subtitles, pictures }, 200, HEADERS);
  });
  app.get("/subtitles/:infohash/:index/:name{\\d{1,3}\\.json}", async (c) => {
    const seconds = { from: secondsOf(c.req.query("from")), to: secondsOf(c.req.query("to")) };
    if (!(seconds.to > seconds.from) || seconds.to - seconds.from > MAX_PICTURE_SECONDS)
      throw new SluiceError("bad_parameter", `from, to: expected up to ${MAX_PICTURE_SECONDS} seconds`);
    const lease = await open(c);
    const pictures = await lease.statesOf(Number.parseInt(c.req.param("name"), 10), seconds);
    return c.json({ pictures }, 200, HEADERS);
  });
  app.get("/subtitles/:infohash/:index/:name{\\d{1,3}\\.(?:vtt|srt)}", async (c) => {
    const [number = "", format] = c.req.param("name").split(".") as [string, "vtt" | "srt"];
    const delaySeconds = delayOf(c.req.query("delay"));
    const lease = await open(c);
    const headers = { ...HEADERS, "content-type": TYPES[format] };
    try {
      const body = lease.open(Number(number), format, delaySeconds);
      if (c.req.method !== "HEAD") return c.body(body, 200, headers);
    } catch (thrown) {
      lease.release();
      throw thrown;
    }
    lease.release();
    return c.body(null, 200, headers);
  });
  // The page converts a file of the user. This path is closed to pages of other sites, as all paths below /app are.
  const uploads = new BodySlots(UPLOADS);
  app.post("/app/subtitles", async (c) => {
    const release = uploads.take(senderOf(c.env.origin));
    try {
      const { body } = c.req.raw;
      const bytes = body ? await limitedBytes(body, MAX_FILE_BYTES, tooLarge) : new Uint8Array();
      const text = await dependencies.engine.convertSubtitles(c.req.query("name") ?? "", bytes);
      return c.body(text, 200, { ...HEADERS, "content-type": TYPES.vtt });
    } finally {
      release();
    }
  });
  return app;
}

function tooLarge(): SluiceError {
  return new SluiceError("too_large", "the subtitle file is larger than 10 MB");
}

/** Returns a time of a film; NaN if it is not valid. */
function secondsOf(text = ""): number {
  return /^\d{1,6}(?:\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
}

/** Returns the `delay` of a request in seconds; throws `bad_parameter`. */
function delayOf(text = "0"): number {
  if (/^[+-]?\d{1,3}(?:\.\d{1,3})?$/.test(text.trim()) && Math.abs(Number(text)) <= MAX_DELAY_SECONDS)
    return Number(text);
  throw new SluiceError(
    "bad_parameter",
    `delay: expected seconds between -${MAX_DELAY_SECONDS} and ${MAX_DELAY_SECONDS}`,
  );
}
