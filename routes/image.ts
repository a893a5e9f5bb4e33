import { Hono } from "hono";
import type { Library } from "../src/library/library.ts";
import { byteStream } from "./byte-stream.ts";
import type { RouteEnv } from "./house.ts";

/** `/image/<id>`: a logo that was uploaded. Its id is made of its bytes, so that it never changes. */
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
      // Should it ever be something else than it says, it runs nothing.
      "content-security-policy": "sandbox; default-src 'none'",
    };
    if (c.req.header("if-none-match") === etag) return c.body(null, 304, headers);
    const body = c.req.method === "HEAD" ? null : byteStream(image.bytes);
    return new Response(body, { headers: { ...headers, "content-length": String(image.bytes.length) } });
  });
  return app;
}
