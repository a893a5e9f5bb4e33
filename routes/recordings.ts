import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import type { ByteRange } from "../src/base/range.ts";
import type {
  RecordedFile,
  RecordedMedia,
  Recording,
  Recordings,
} from "../src/recordings/recording-contract.ts";
import type { RouteEnv } from "./http/dependencies.ts";
import { attachment, textResponse } from "./http/responses.ts";
import { answerRange } from "./range.ts";
import { MANIFEST_TYPE } from "./session.ts";

const CHUNK_BYTES = 128 * 1024;

/**
 * Serves `/recordings/<id>.ts`: the file of a recording, with Range, also while it grows; `/recordings/<id>.mkv`: its copy; and `/recordings/<id>.m3u8`: what is recorded at the time
 * of the request as HLS, for browsers. Like the exported playlist it needs no token,
 * because players have none; the access middleware refuses pages of other sites.
 */
export function createRecordingRoutes(recordings: Recordings): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/recordings/:name{\\d{1,15}\\.(?:ts|mkv)}", async (c) => {
    const [id, ending] = c.req.param("name").split(".") as [string, "ts" | "mkv"];
    const isCopy = ending === "mkv";
    const file = await (isCopy ? recordings.openMatroska(Number(id)) : recordings.open(Number(id)));
    if (file === undefined)
      throw new SluiceError("no_such_file", isCopy ? "there is no copy yet" : "nothing is recorded yet");
    const { status, headers, range } = answerRange(c, file.bytes);
    const all = {
      "content-type": isCopy ? "video/x-matroska" : "video/mp2t",
      "cache-control": "no-store",
      ...headers,
      ...saved(c, file.recording, ending),
    };
    if (range !== undefined) return new Response(streamOf(file, range), { status, headers: all });
    await file.close();
    return new Response(null, { status, headers: all });
  });
  app.get("/recordings/:name{\\d{1,15}\\.m3u8}", async (c) => {
    const id = Number.parseInt(c.req.param("name"), 10);
    const media = await mediaOf(recordings, id);
    const manifest = media.manifest((index, bytes) => `${id}/${bytes}/${index}.ts`);
    return textResponse(c, manifest, MANIFEST_TYPE);
  });
  app.get("/recordings/:id{\\d{1,15}}/:bytes{\\d{1,15}}/:segment{\\d{1,6}\\.ts}", async (c) => {
    const media = await mediaOf(recordings, Number(c.req.param("id")), Number(c.req.param("bytes")));
    const stream = await media.segment(Number.parseInt(c.req.param("segment"), 10), c.req.raw.signal);
    const headers = { "content-type": "video/mp2t", "cache-control": "no-store" };
    if (c.req.method !== "HEAD")
      return new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>, { headers });
    await stream.cancel();
    return new Response(null, { headers });
  });
  return app;
}

async function mediaOf(recordings: Recordings, id: number, bytes?: number): Promise<RecordedMedia> {
  const found = await recordings.media(id, bytes);
  if (found === undefined) throw new SluiceError("no_such_file", "nothing is recorded yet");
  return found;
}

/** Names the file after the programme if the browser shall save it. */
function saved(
  c: Context<RouteEnv>,
  { title, channel, start }: Recording,
  ending: string,
): Record<string, string> {
  if (c.req.query("download") !== "1") return {};
  const day = new Date(1000 * start).toISOString().slice(0, 10);
  const name = [...new Set([title, channel, day])].join(" - ").replace(/[/\\]/g, "_");
  return attachment(`${name}.${ending}`);
}

/** The bytes of a range, driven by the reader's pull; closes the file at the end. */
function streamOf(file: RecordedFile, { start, end }: ByteRange): ReadableStream<Uint8Array> {
  let at = start;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = new Uint8Array(Math.min(CHUNK_BYTES, end - at));
          await file.read(at, chunk);
          at += chunk.length;
          controller.enqueue(chunk);
        } catch (error) {
          await file.close();
          throw error;
        }
        if (at < end) return;
        await file.close();
        controller.close();
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  );
}
