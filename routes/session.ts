import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { UnixSeconds } from "../src/base/time.ts";
import type { ManifestReload, ManifestRendition, Session } from "../src/engine/engine.ts";
import { baseUrl } from "./access.ts";
import { success } from "./envelope.ts";
import type { House, RouteEnv } from "./house.ts";
import { presentInfo } from "./present.ts";
import { textAnswer } from "./text-answer.ts";

/** Clients ask again after 15 s in any case. */
const EVENT_WAIT_MS = 15_000;
/** What a client may set as the idle time: it shall not keep a session for ever. */
const IDLE_LIMITS_SECONDS = { least: 1, most: 24 * 3600 };

const MANIFEST_TYPE = "application/vnd.apple.mpegurl";
const TRANSPORT_STREAM = {
  "content-type": "video/mp2t",
  "cache-control": "no-store",
  "accept-ranges": "none",
};

/** The URLs of a session: playing, looking, commanding (interface: Session URLs). */
export function createSessionRoutes({ engine }: House): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();

  const sessionOf = (c: Context<RouteEnv>): Session => {
    const infohash = parseInfohash(c.req.param("infohash") ?? "");
    // What clients hang on to it (`.m3u8`, `&.mp4`) means nothing.
    const key = /^[0-9a-f]*/.exec(c.req.param("key") ?? "")![0];
    const session = infohash && engine.session(infohash, key);
    if (!session) throw new SluiceError("unknown_session", "the session never was, or has ended");
    return session;
  };

  app.get("/ace/m/:infohash/:key", async (c) => {
    const session = sessionOf(c);
    if (session.output !== "hls") throw new SluiceError("unknown_session", "the session is no HLS session");
    if (c.req.method === "HEAD")
      return c.body(null, 200, { "content-type": MANIFEST_TYPE, "cache-control": "no-store" });
    const reload = reloadOf((name) => c.req.query(name));
    const manifest = await session.manifest(baseUrl(c), renditionOf(c), c.req.raw.signal, reload);
    return textAnswer(c, manifest, MANIFEST_TYPE);
  });

  const transportStream = async (c: Context<RouteEnv>) => {
    const session = sessionOf(c);
    // A HEAD must not wait for data, let alone fetch any. The length is not known: a Range is answered with the whole.
    if (c.req.method === "HEAD") return c.body(null, 200, TRANSPORT_STREAM);
    return c.body(await session.transportStream(c.req.raw.signal), 200, TRANSPORT_STREAM);
  };
  app.get("/ace/r/:infohash/:key", transportStream);
  app.get("/content/:infohash/:key", transportStream);

  app.get("/ace/stat/:infohash/:key", async (c) => {
    const session = sessionOf(c);
    if (c.req.query("skip_player_activity") !== "1") session.touch();
    return success(c, "response", presentInfo(session, await session.info(), engine.settings.compat));
  });

  app.on(["GET", "POST"], "/ace/cmd/:infohash/:key", (c) => {
    command(sessionOf(c), (name) => c.req.query(name));
    // Some clients read the control envelope here, and say so with the version they send with a stop.
    return success(c, (c.req.query("api_version") ?? "1") === "1" ? "response" : "result", "ok");
  });

  app.get("/ace/event/:infohash/:key", async (c) => {
    const session = sessionOf(c);
    // A HEAD must not wait, nor take an event that its asker never sees.
    if (c.req.method === "HEAD") return success(c, "response", null);
    return success(c, "response", (await session.nextEvent(EVENT_WAIT_MS, c.req.raw.signal)) ?? null);
  });
  return app;
}

function renditionOf(c: Context): ManifestRendition {
  const subtitles = c.req.query("subtitles");
  if (subtitles !== undefined && /^\d{1,3}$/.test(subtitles)) return { subtitles: Number(subtitles) };
  const audio = c.req.query("audio");
  if (audio !== undefined && /^[1-9]\d{0,2}$/.test(audio)) return { audio: Number(audio) };
  return c.req.query("rendition") === "media" ? "media" : "main";
}

/** What a player of a live stream wants the manifest to have before it is answered (RFC 8216bis 6.2.5). */
function reloadOf(query: (name: string) => string | undefined): ManifestReload {
  const segment = directive(query, "_HLS_msn");
  const part = directive(query, "_HLS_part");
  if (part !== undefined && segment === undefined)
    throw new SluiceError("bad_parameter", "_HLS_part: expected _HLS_msn with it");
  const skip = query("_HLS_skip");
  const isDelta = skip === "YES" || skip === "v2";
  return segment === undefined ? { isDelta } : { isDelta, reload: { segment, part } };
}

function directive(query: (name: string) => string | undefined, name: string): number | undefined {
  const text = query(name);
  if (text === undefined || /^\d{1,15}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new SluiceError("bad_parameter", `${name}: expected a whole number, got ${text.slice(0, 40)}`);
}

function command(session: Session, query: (name: string) => string | undefined): void {
  const method = query("method");
  switch (method) {
    case "stop":
      session.stop();
      break;
    case "set_player_activity_timeout":
      session.setIdleMs(1000 * idleSeconds(query("timeout")));
      break;
    case "liveseek":
      session.liveSeek(livePosition(query("pos")));
      break;
    case "set_stream":
      throw new SluiceError("bad_parameter", "set_stream: this content has one stream only");
    default:
      throw new SluiceError(
        "bad_parameter",
        method ? `unknown method ${method.slice(0, 60)}` : "method is missing",
      );
  }
}

/** A position of `livepos`: UNIX seconds; -1 is where the stream is now. */
function livePosition(text: string | undefined): UnixSeconds | -1 {
  if (text === "-1") return -1;
  if (text !== undefined && /^\d{1,12}$/.test(text)) return Number(text) as UnixSeconds;
  throw new SluiceError(
    "bad_parameter",
    `liveseek: pos: expected UNIX seconds, or -1 for live, got ${text?.slice(0, 40) ?? "nothing"}`,
  );
}

function idleSeconds(text: string | undefined): number {
  const { least, most } = IDLE_LIMITS_SECONDS;
  const seconds = Number(text);
  if (text && seconds >= least && seconds <= most) return seconds;
  throw new SluiceError(
    "bad_parameter",
    `timeout: expected ${least} to ${most} seconds, got ${text ?? "nothing"}`,
  );
}
