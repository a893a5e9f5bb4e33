import { type Context, Hono } from "hono";
import { contentFeatures } from "../src/base/content-features.ts";
import { SluiceError } from "../src/base/errors.ts";
import { type Infohash, parseInfohash } from "../src/base/ids.ts";
import { mimeNames } from "../src/base/mime.ts";
import type { UnixSeconds } from "../src/base/time.ts";
import type {
  ManifestReload,
  PlayerBody,
  RemuxForPlayer,
  Session,
  SessionRendition,
} from "../src/playback/contract.ts";
import type { ManifestRendition } from "../src/transfer/segment-source.ts";
import { baseUrl, pathPrefix } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { success, textResponse } from "./http/responses.ts";
import { presentInfo } from "./present.ts";
import { answerRange, type RangeAnswer } from "./range.ts";

/** Clients repeat the request after 15 s at the latest. */
const EVENT_WAIT_MS = 15_000;
/** Bounds of the idle timeout that a client may set; the upper one prevents a session that never ends. */
const IDLE_LIMITS_SECONDS = { min: 1, max: 24 * 3600 };

/** A HEAD request learns the type and length of a file if its start takes no longer. It does not wait for a slow swarm. */
const HEAD_WAIT_MS = 1000;

/** The media type of an HLS manifest. */
export const MANIFEST_TYPE = "application/vnd.apple.mpegurl";
const MPEG_TS = { "content-type": "video/mp2t", "cache-control": "no-store" };
/** The headers of an endless transport stream. */
export const TRANSPORT_STREAM = { ...MPEG_TS, "accept-ranges": "none" };
/** The way of the media: the pieces of the swarm, through the remuxer, to a player. */
export const connect: RemuxForPlayer = ({ pieces, remuxer }) => pieces.pipeThrough(remuxer);
/** A Range request for a stream of unknown length gets the whole stream. */
const UNKNOWN_LENGTH: RangeAnswer = { status: 200, headers: TRANSPORT_STREAM, range: undefined };

/** Serves the URLs of a session: playback, statistics, commands, events (interface: Session URLs). */
export function createSessionRoutes({ engine, statRead }: RouteDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();

  const sessionOf = (c: Context<RouteEnv>): Session => {
    const { infohash, key } = nameOf(c);
    const session = infohash && engine.session(infohash, key);
    if (!session) throw new SluiceError("unknown_session", "the session does not exist or has ended");
    return session;
  };

  /** Returns the session of a player that connects; waits for its content. */
  const playerSession = async (c: Context<RouteEnv>): Promise<Session> => {
    const { infohash, key } = nameOf(c);
    return (infohash && (await engine.reconnect(infohash, key, c.req.raw.signal))) ?? sessionOf(c);
  };

  app.get("/ace/m/:infohash/:key", async (c) => {
    const session = c.req.method === "HEAD" ? sessionOf(c) : await playerSession(c);
    const toFile = () => c.redirect(`${pathPrefix(c)}/ace/r/${session.infohash}/${session.key}`, 302);
    if (session.output !== "hls" && !hasNewPlace(c, session))
      throw new SluiceError("unknown_session", "this is not an HLS session");
    if (session.output !== "hls" || (c.req.method === "HEAD" && session.body)) return toFile();
    if (c.req.method === "HEAD")
      return c.body(null, 200, { "content-type": MANIFEST_TYPE, "cache-control": "no-store" });
    const reload = reloadOf((name) => c.req.query(name));
    try {
      const manifest = await session.manifest(baseUrl(c), ownRendition(c), c.req.raw.signal, reload);
      return textResponse(c, manifest, MANIFEST_TYPE);
    } catch (thrown) {
      // Music that HLS cannot carry is played as the file itself.
      if (session.body) return toFile();
      throw thrown;
    }
  });

  const transportStream = async (c: Context<RouteEnv>) => {
    const session = await playerSession(c);
    if (session.output === "hls" && hasNewPlace(c, session))
      return c.redirect(`${pathPrefix(c)}/ace/m/${session.infohash}/${session.key}.m3u8`, 302);
    if (c.req.method === "HEAD") await session.settle(HEAD_WAIT_MS);
    else await session.awaitStart(c.req.raw.signal);
    const { body: file } = session;
    const size = file?.size ?? session.streamBytes;
    const plain = size === undefined ? UNKNOWN_LENGTH : answerRange(c, size, `"${session.infohash}-${size}"`);
    const answer = { ...plain, headers: { ...plain.headers, ...transferHeaders(c, size === undefined) } };
    if (file) return fileResponse(file, answer);
    const init = { status: answer.status, headers: { ...MPEG_TS, ...answer.headers } };
    if (c.req.method === "HEAD" || answer.status === 416) return new Response(null, init);
    const body = await session.transportStream(connect, c.req.raw.signal, answer.range);
    return new Response(body, init);
  };
  app.get("/ace/r/:infohash/:key", async (c) => renamedType(c, await transportStream(c)));
  app.get("/content/:infohash/:key", async (c) => renamedType(c, await transportStream(c)));

  app.get("/ace/stat/:infohash/:key", async (c) => {
    const session = sessionOf(c);
    if (c.req.query("skip_player_activity") !== "1") session.touch();
    statRead?.(loggable(c.req.header("user-agent") ?? ""));
    return success(c, "response", presentInfo(session, await session.info(), engine.settings.compat));
  });

  app.on(["GET", "POST"], "/ace/cmd/:infohash/:key", async (c) => {
    await command(sessionOf(c), (name) => c.req.query(name));
    // Clients that send an api_version above 1 with a stop expect the control envelope here.
    return success(c, (c.req.query("api_version") ?? "1") === "1" ? "response" : "result", "ok");
  });

  app.get("/ace/event/:infohash/:key", async (c) => {
    const { infohash, key } = nameOf(c);
    const events = (infohash && engine.events(infohash, key)) ?? sessionOf(c);
    // A HEAD request must not wait, and must not consume an event that its client would never see.
    if (c.req.method === "HEAD") return success(c, "response", null);
    return success(c, "response", (await events.nextEvent(EVENT_WAIT_MS, c.req.raw.signal)) ?? null);
  });
  return app;
}

/** Returns the headers that DLNA players ask for (DLNA guidelines 7.4.26.1, 7.4.49.1); some refuse a response without them. */
function transferHeaders(c: Context<RouteEnv>, isLive: boolean): Record<string, string> {
  const mode = c.req.header("transfermode.dlna.org");
  return {
    ...(c.req.header("getcontentfeatures.dlna.org") === "1" && {
      "contentfeatures.dlna.org": contentFeatures(isLive),
    }),
    ...((mode === "Streaming" || mode === "Background") && { "transfermode.dlna.org": mode }),
  };
}

/** Names the type as `mime=` does, if that is another name of it: a DLNA renderer compares it with the types that it lists. */
function renamedType(c: Context<RouteEnv>, response: Response): Response {
  const name = c.req.query("mime");
  if (name && mimeNames(response.headers.get("content-type") ?? "").includes(name))
    response.headers.set("content-type", name);
  return response;
}

/** Returns the infohash and the key in a session URL. Some clients append an ending (`.m3u8`, `&.mp4`), which is ignored. */
function nameOf(c: Context): { infohash: Infohash | undefined; key: string } {
  const key = /^[0-9a-f]*/.exec(c.req.param("key") ?? "")![0];
  return { infohash: parseInfohash(c.req.param("infohash") ?? ""), key };
}

/** True for a start that waited for its content, which then decided the output (`playlist_output_format_…`). */
function hasNewPlace(c: Context, { infohash }: Session): boolean {
  return infohash !== nameOf(c).infohash;
}

function fileResponse({ mime, open }: PlayerBody, { status, headers, range }: RangeAnswer): Response {
  const init = { status, headers: { "content-type": mime, "cache-control": "no-store", ...headers } };
  return new Response(range ? open(range) : null, init);
}

/** Parses which manifest of the session a URL means. */
function ownRendition(c: Context): SessionRendition {
  const variant = c.req.query("variant");
  return variant !== undefined && /^\d$/.test(variant) ? { variant: Number(variant) } : renditionOf(c);
}

/** Parses which manifest of the content a URL means. */
export function renditionOf(c: Context): ManifestRendition {
  const subtitles = c.req.query("subtitles");
  if (subtitles !== undefined && /^\d{1,3}$/.test(subtitles)) return { subtitles: Number(subtitles) };
  const audio = c.req.query("audio");
  if (audio !== undefined && /^[1-9]\d{0,2}$/.test(audio)) return { audio: Number(audio) };
  return c.req.query("rendition") === "media" ? "media" : "main";
}

/** Parses the delivery directives of a live player: which segment the manifest must contain (RFC 8216bis 6.2.5). */
function reloadOf(query: (name: string) => string | undefined): ManifestReload {
  const segment = directive(query, "_HLS_msn");
  const part = directive(query, "_HLS_part");
  if (part !== undefined && segment === undefined)
    throw new SluiceError("bad_parameter", "_HLS_part: expected _HLS_msn as well");
  const skip = query("_HLS_skip");
  const isDelta = skip === "YES" || skip === "v2";
  return segment === undefined ? { isDelta } : { isDelta, reload: { segment, part } };
}

function directive(query: (name: string) => string | undefined, name: string): number | undefined {
  const text = query(name);
  if (text === undefined || /^\d{1,15}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new SluiceError("bad_parameter", `${name}: expected a whole number, got ${text.slice(0, 40)}`);
}

async function command(session: Session, query: (name: string) => string | undefined): Promise<void> {
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
      await session.setStream(streamIndex(query("stream_index")));
      break;
    default:
      throw new SluiceError(
        "bad_parameter",
        method ? `unknown method ${method.slice(0, 60)}` : "method is missing",
      );
  }
}

/** Parses an index into `hls_streams`; -1 means that the engine chooses. */
function streamIndex(text: string | undefined): number {
  if (text !== undefined && /^(?:-1|\d{1,4})$/.test(text)) return Number(text);
  throw new SluiceError(
    "bad_parameter",
    `set_stream: stream_index: expected a whole number, got ${text?.slice(0, 40) ?? "nothing"}`,
  );
}

/** Parses a position in UNIX seconds; -1 is the live edge. */
function livePosition(text: string | undefined): UnixSeconds | -1 {
  if (text === "-1") return -1;
  if (text !== undefined && /^\d{1,12}$/.test(text)) return Number(text) as UnixSeconds;
  throw new SluiceError(
    "bad_parameter",
    `liveseek: pos: expected UNIX seconds, or -1 for live, got ${text?.slice(0, 40) ?? "nothing"}`,
  );
}

function idleSeconds(text: string | undefined): number {
  const { min, max } = IDLE_LIMITS_SECONDS;
  const seconds = Number(text);
  if (text && seconds >= min && seconds <= max) return seconds;
  throw new SluiceError(
    "bad_parameter",
    `timeout: expected ${min} to ${max} seconds, got ${text ?? "nothing"}`,
  );
}

/** Shortens the name of a program, and removes characters that are not plain text. */
function loggable(userAgent: string): string {
  return userAgent.replace(/[^\w ./()-]/g, "").slice(0, 60);
}
