import { zValidator } from "@hono/zod-validator";
import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import type { Session } from "../src/engine/engine.ts";
import { baseUrl } from "./access.ts";
import { success } from "./envelope.ts";
import type { House, RouteEnv } from "./house.ts";
import { badParameter, type PlaybackParams, playbackParams, selectorOf } from "./params.ts";
import { presentSession, sessionUrls } from "./present.ts";
import { mayReachPrivate } from "./private-urls.ts";
import { transportFileOf } from "./transport-file-body.ts";

/** A JSON start answers within a second; a swarm that is quick enough is `dl` already at the first look. */
const SETTLE_MS = 800;

/** `/ace/getstream` and `/ace/manifest.m3u8` (interface: Playback endpoints). */
export function createPlaybackRoutes(house: House): Hono<RouteEnv> {
  const { engine } = house;
  const app = new Hono<RouteEnv>();
  const query = zValidator("query", playbackParams, (result) => {
    if (!result.success) throw badParameter(result.error);
  });

  const answer = async (c: Context<RouteEnv>, params: PlaybackParams, output: "ts" | "hls") => {
    const request = {
      selector: await namedContent(c, params),
      playerId: params.pid ?? params.sid,
      output,
      container: params.container ?? "auto",
      fileIndex: params._idx === undefined || params._idx < 0 ? undefined : params._idx,
      audioLanguage: params.preferred_audio_language,
      maxHeight: params.quality,
      variantIndex: params.stream_id,
      clientSessionId: params.client_session_id ?? -1,
      wantsEvents: params.use_api_events !== undefined,
      allowPrivateUrls: mayReachPrivate(c, house),
    };
    const session = await engine.start(request, c.req.raw.signal);
    if (params.format !== "json") return c.redirect(sessionUrls(baseUrl(c), session).playback, 302);
    await settled(session);
    return success(c, "response", presentSession(baseUrl(c), session));
  };

  app.on(["GET", "POST"], "/ace/getstream", query, (c) => answer(c, c.req.valid("query"), "ts"));
  app.on(["GET", "POST"], "/ace/manifest.m3u8", query, (c) => answer(c, c.req.valid("query"), "hls"));
  // Some TV players ask here for content of all kinds; a manifest by its URL is what the address is for.
  app.on(["GET", "POST"], "/hls/manifest.m3u8", query, (c) => {
    const params = c.req.valid("query");
    const manifestUrl = c.req.query("manifest_url")?.trim();
    return answer(c, manifestUrl ? { ...params, url: manifestUrl } : params, "hls");
  });
  return app;
}

/** A transport file in the body names the content by itself; else the query does. */
async function namedContent(c: Context<RouteEnv>, params: PlaybackParams) {
  const bytes = c.req.method === "POST" ? await transportFileOf(c.req.raw) : undefined;
  if (bytes) return { kind: "transport_file", bytes } as const;
  const selector = selectorOf(params, new URL(c.req.url).searchParams);
  if (selector) return selector;
  throw new SluiceError("no_selector", "give one of content_id, infohash, url, magnet");
}

/** Gives a quick swarm the time to be ready. What turns out impossible meanwhile is the answer. */
async function settled(session: Session): Promise<void> {
  try {
    await session.settle(SETTLE_MS);
  } catch (thrown) {
    session.stop();
    throw thrown;
  }
}
