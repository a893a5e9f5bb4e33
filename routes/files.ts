import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { ContentFile } from "../src/engine/contract.ts";
import type { House, RouteEnv } from "./house.ts";
import { contentRange, parseRange, type RangeWish } from "./range.ts";

/** `/files/<infohash>/<index>/<name>`: the file as it is, with Range. The name is for the player's eyes only. */
export function createFileRoutes({ engine }: House): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const serve = async (c: Context<RouteEnv>) => {
    const infohash = parseInfohash(c.req.param("infohash") ?? "");
    if (!infohash) throw new SluiceError("bad_selector", "expected /files/<infohash>/<index>/<name>");
    const index = c.req.param("index") ?? "";
    if (!/^\d{1,6}$/.test(index))
      throw new SluiceError("no_such_file", `expected a file index, got "${index.slice(0, 60)}"`);
    // The content of an infohash never changes: its tag is strong (RFC 9110 8.8.3).
    const etag = `"${infohash}-${Number(index)}"`;
    if (c.req.header("if-none-match") === etag) return c.body(null, 304, { etag });
    let wish: RangeWish = "whole";
    const { file, stream } = await engine.read(
      infohash,
      Number(index),
      (file) => {
        wish = wishedRange(c, etag, file.size);
        if (wish === "unsatisfiable" || c.req.method === "HEAD" || file.size === 0) return undefined;
        return wish === "whole" ? { start: 0, end: file.size } : wish;
      },
      c.req.raw.signal,
    );
    return answer(c, file, etag, wish as RangeWish, stream);
  };
  app.get("/files/:infohash/:index", serve);
  app.get("/files/:infohash/:index/:name{.*}", serve);
  return app;
}

function answer(
  c: Context,
  file: ContentFile,
  etag: string,
  wish: RangeWish,
  stream: ReadableStream<Uint8Array> | undefined,
): Response {
  const headers = { ...safeHeaders(file), ...disposition(c, file), etag, "accept-ranges": "bytes" };
  if (wish === "unsatisfiable")
    return c.body(null, 416, { ...headers, "content-range": contentRange(undefined, file.size) });
  const { start, end } = wish === "whole" ? { start: 0, end: file.size } : wish;
  const length = { "content-length": String(end - start) };
  if (wish === "whole") return new Response(stream ?? null, { headers: { ...headers, ...length } });
  const partial = { ...headers, ...length, "content-range": contentRange(wish, file.size) };
  return new Response(stream ?? null, { status: 206, headers: partial });
}

/** The Range header, unless `If-Range` names another state of the file (RFC 9110 13.1.5). */
function wishedRange(c: Context, etag: string, size: number): RangeWish {
  const condition = c.req.header("if-range");
  if (condition !== undefined && condition !== etag) return "whole";
  return parseRange(c.req.header("range"), size);
}

/** With `download=1` a browser saves it under its own name (RFC 6266, RFC 8187) instead of playing it. */
function disposition(c: Context, { name }: ContentFile): Record<string, string> {
  if (c.req.query("download") !== "1") return {};
  const last = name.split("/").at(-1)!.toWellFormed();
  // Programs that read the plain form alone get what of it is safe in quotes.
  const plain = last.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(last).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16)}`,
  );
  return { "content-disposition": `attachment; filename="${plain}"; filename*=UTF-8''${encoded}` };
}

/** Content comes from strangers: nothing of it may run as a page of ours, whatever its name says. */
function safeHeaders(file: ContentFile): Record<string, string> {
  const isHarmless = /^(?:video|audio)\/|^image\/(?:png|jpeg|gif|webp)$|^text\/(?:plain|vtt)$/.test(
    file.mime,
  );
  return {
    "content-type": isHarmless ? file.mime : "application/octet-stream",
    "content-security-policy": "sandbox; default-src 'none'",
  };
}
