import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import type { PlaybackRequest, Session } from "../src/playback/contract.ts";
import type { AudioConversion } from "../src/remux/contract.ts";
import type { ContentSelector } from "../src/transfer/contract.ts";
import { allowsPrivateUrls, baseUrl, isForeignPage } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { knownSelector } from "./http/known-items.ts";
import { badParameter, type PlaybackParams, playbackParams, selectorOf } from "./http/params.ts";
import { transportFileOf } from "./http/request-body.ts";
import { success } from "./http/responses.ts";
import { presentSession, sessionUrls } from "./present.ts";

/**
 * A start is answered this long after its request, also if the content is not known by then: clients expect an answer within
 * half a second. A JSON start uses the rest of this time, so that the first `stat` of a fast swarm already reports `dl`.
 */
export const SETTLE_MS = 450;

/** User agents of browsers have about 120 characters. */
const MAX_PROGRAM_CHARACTERS = 200;

/** Serves `/ace/getstream` and `/ace/manifest.m3u8` (interface: Playback endpoints). */
export function createPlaybackRoutes(dependencies: RouteDependencies): Hono<RouteEnv> {
  const { engine } = dependencies;
  const app = new Hono<RouteEnv>();
  const query = zValidator("query", playbackParams, (result) => {
    if (!result.success) throw badParameter(result.error);
  });

  const start = async (c: Context<RouteEnv>, params: PlaybackParams, output: "ts" | "hls") => {
    const request = playbackRequest(
      ...([c, dependencies, params, output] as const),
      await requestedContent(c, params, dependencies),
    );
    const startedAt = performance.now();
    const session = await engine.begin(request, SETTLE_MS, c.req.raw.signal);
    return answerStart(c, params, session, SETTLE_MS - (performance.now() - startedAt));
  };

  app.on(["GET", "POST"], "/ace/getstream", query, (c) => start(c, c.req.valid("query"), "ts"));
  app.on(["GET", "POST"], "/ace/manifest.m3u8", query, (c) => start(c, c.req.valid("query"), "hls"));
  // This path plays an HLS manifest by its URL, but some TV players request any content here.
  app.on(["GET", "POST"], "/hls/manifest.m3u8", query, (c) => {
    const params = c.req.valid("query");
    const manifestUrl = c.req.query("manifest_url")?.trim();
    return start(c, manifestUrl ? { ...params, url: manifestUrl } : params, "hls");
  });
  return app;
}

/** Answers a start: redirects to the session, or describes it after at most `withinMs`. */
export async function answerStart(
  c: Context<RouteEnv>,
  params: PlaybackParams,
  session: Session,
  withinMs: number,
): Promise<Response> {
  if (params.format !== "json") return c.redirect(sessionUrls(baseUrl(c), session).playback, 302);
  await settle(session, withinMs);
  return success(c, "response", presentSession(baseUrl(c), session));
}

/** Returns the request to play content with the parameters of a playback endpoint. */
export function playbackRequest(
  c: Context<RouteEnv>,
  dependencies: RouteDependencies,
  params: PlaybackParams,
  output: "ts" | "hls",
  selector: ContentSelector,
): PlaybackRequest {
  return {
    client: {
      host: c.env.origin.remote.host,
      program: (c.req.header("user-agent") ?? "").slice(0, MAX_PROGRAM_CHARACTERS),
    },
    selector,
    playerId: params.pid ?? params.sid,
    output,
    container: params.container ?? "auto",
    fileIndex: params._idx === undefined || params._idx < 0 ? undefined : params._idx,
    audioLanguage: params.preferred_audio_language,
    audioConversion: conversionOf(params, output),
    maxHeight: params.quality,
    variantIndex: params.stream_id,
    clientSessionId: params.client_session_id ?? -1,
    isLowLatency: c.req.query("low_latency") ? params.low_latency : dependencies.engine.settings.isLowLatency,
    wantsEvents: params.use_api_events,
    wantsStops: params.use_stop_notifications || params.use_api_stop,
    isRestart: params.force_session_restart,
    withoutPeers: params.disable_p2p,
    selectedFiles: params.playlist_selected_indexes,
    nextFiles: params.next_file_indexes,
    outputFormats: {
      live: params.playlist_output_format_live ?? "auto",
      vod: params.playlist_output_format_vod ?? "auto",
    },
    allowPrivateUrls: allowsPrivateUrls(c, dependencies),
    isForeign: isForeignPage(c, dependencies),
  };
}

/** Returns the audio that the request converts; undefined if none. */
function conversionOf(params: PlaybackParams, output: "ts" | "hls"): AudioConversion | undefined {
  const { transcode_audio, transcode_mp3, transcode_ac3, audio_channels } = params;
  if (!transcode_audio && !transcode_mp3 && !transcode_ac3) return undefined;
  const channels = audio_channels === 6 ? 6 : 2;
  // Segments of MPEG-TS carry neither Opus nor FLAC.
  const isHls = output === "hls" && params.container !== "ts";
  return { all: transcode_audio, mp3: transcode_mp3, ac3: transcode_ac3, isHls, channels };
}

/** Returns the content that the request names: a transport file in the body, else a parameter of the query. */
async function requestedContent(
  c: Context<RouteEnv>,
  params: PlaybackParams,
  { library }: RouteDependencies,
): Promise<ContentSelector> {
  const bytes = c.req.method === "POST" ? await transportFileOf(c.req.raw) : undefined;
  if (bytes) return { kind: "transport_file", bytes } as const;
  const selector = selectorOf(params, new URL(c.req.url).searchParams);
  if (selector?.kind === "url") return { ...selector, headers: c.env.contentHeaders };
  if (selector?.kind === "magnet") return { ...selector, ...(c.env.isOwnLink && { isOwn: true }) };
  if (selector) return library === undefined ? selector : knownSelector(selector, library.items);
  throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet");
}

/** Waits up to `withinMs` for the session to be ready. If the start fails meanwhile, stops the session and throws. */
async function settle(session: Session, withinMs: number): Promise<void> {
  try {
    await session.settle(Math.max(0, withinMs));
  } catch (thrown) {
    session.stop();
    throw thrown;
  }
}
