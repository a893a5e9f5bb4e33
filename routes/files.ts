import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { Library } from "../src/library/library.ts";
import type { ContentFile } from "../src/transfer/contract.ts";
import { isForeignPage } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { attachment, byteStream } from "./http/responses.ts";
import { answerRange, type RangeAnswer } from "./range.ts";

/** Serves `/files/<infohash>/<index>/<name>`: the unmodified file, with Range. The engine ignores the name; players display it. */
export function createFileRoutes(dependencies: RouteDependencies): Hono<RouteEnv> {
  const { engine } = dependencies;
  const app = new Hono<RouteEnv>();
  const serve = async (c: Context<RouteEnv>) => {
    const infohash = parseInfohash(c.req.param("infohash") ?? "");
    if (!infohash) throw new SluiceError("bad_selector", "expected /files/<infohash>/<index>/<name>");
    const index = c.req.param("index") ?? "";
    if (!/^\d{1,6}$/.test(index))
      throw new SluiceError("no_such_file", `expected a file index, got "${index.slice(0, 60)}"`);
    // The content of an infohash never changes, so the entity tag is strong (RFC 9110 8.8.3).
    const etag = `"${infohash}-${Number(index)}"`;
    if (c.req.header("if-none-match") === etag) return c.body(null, 304, { etag });
    let answer!: RangeAnswer;
    const { file, stream } = await engine.read(
      infohash,
      Number(index),
      (file) => {
        answer = answerRange(c, file.size, etag);
        return answer.range;
      },
      { signal: c.req.raw.signal, isForeign: isForeignPage(c, dependencies) },
    );
    const headers = { ...safeHeaders(file), ...disposition(c, file), ...answer.headers };
    return new Response(stream ?? null, { status: answer.status, headers });
  };
  app.get("/files/:infohash/:index", serve);
  app.get("/files/:infohash/:index/:name{.*}", serve);
  return app;
}

/** Returns the header that makes a browser save the file under its own name if `download=1`. */
function disposition(c: Context, { name }: ContentFile): Record<string, string> {
  return c.req.query("download") === "1" ? attachment(name.split("/").at(-1)!) : {};
}

/** Content is untrusted: these headers keep a browser from running it as a page of the engine, whatever its file name. */
function safeHeaders(file: ContentFile): Record<string, string> {
  const isHarmless = /^(?:video|audio)\/|^image\/(?:png|jpeg|gif|webp)$|^text\/(?:plain|vtt)$/.test(
    file.mime,
  );
  return {
    "content-type": isHarmless ? file.mime : "application/octet-stream",
    "content-security-policy": "sandbox; default-src 'none'",
  };
}

/** Serves `/image/<id>`: an uploaded logo. The id is a hash of the image, so an image never changes. */
export function createImageRoutes({ images }: Pick<Library, "images">): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.get("/image/:id{[0-9a-f]{40}}", async (c) => {
    const etag = `"${c.req.param("id")}"`;
    const image = await images.get(c.req.param("id"));
    if (!image) return c.text("no such image\n", 404, { "cache-control": "no-store" });
    const headers = {
      etag,
      "content-type": image.mime,
      "cache-control": "public, max-age=31536000, immutable",
      // A file that is not the image it claims to be runs no script.
      "content-security-policy": "sandbox; default-src 'none'",
    };
    if (c.req.header("if-none-match") === etag) return c.body(null, 304, headers);
    const body = c.req.method === "HEAD" ? null : byteStream(image.bytes);
    return new Response(body, { headers: { ...headers, "content-length": String(image.bytes.length) } });
  });
  return app;
}
