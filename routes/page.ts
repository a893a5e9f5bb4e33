import { Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import type { Engine } from "../src/engine/engine.ts";

/** One file of the page; `etag` changes with its text. */
interface PageAsset {
  readonly type: string;
  readonly text: string;
}

/**
 * What the page may do: run its own scripts, talk to this engine, and play what hls.js hands to the browser as `blob:`.
 * Nothing inline, nothing from elsewhere, and no page may frame it.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "media-src 'self' blob:",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** What the page stands on. */
export interface PageParts {
  readonly engine: Pick<Engine, "acquire">;
  readonly assets: Readonly<Record<string, PageAsset>>;
  /** Makes an entity tag of a text. */
  readonly digest: (text: string) => string;
}

/** The start page at `/`, its files below `/app/`, and the list of files it lets the user choose from. */
export function createPage({ engine, assets, digest }: PageParts): Hono {
  const app = new Hono();
  for (const [path, asset] of Object.entries(assets)) {
    const headers = {
      "content-type": asset.type,
      "content-security-policy": CONTENT_SECURITY_POLICY,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      // A new version of the program must show at the next visit; the tag makes that cheap.
      "cache-control": "no-cache",
      etag: `"${digest(asset.text)}"`,
    };
    app.get(path, (c) => {
      const isKnown = c.req.header("if-none-match") === headers.etag;
      return isKnown ? c.body(null, 304, headers) : c.body(asset.text, 200, headers);
    });
  }
  app.get("/app/content/:infohash", async (c) => {
    const infohash = parseInfohash(c.req.param("infohash"));
    if (infohash === undefined) throw new SluiceError("bad_selector", "expected 40 hexadecimal digits");
    // It is open already when the page asks: a start told the page this infohash.
    const lease = await engine.acquire({ kind: "infohash", infohash });
    const { name, files } = lease.transfer;
    lease.release();
    return c.json({ name, files }, 200, { "x-content-type-options": "nosniff", "cache-control": "no-store" });
  });
  app.get("/app/content/:infohash/:index/languages", async (c) => {
    const infohash = parseInfohash(c.req.param("infohash"));
    if (infohash === undefined) throw new SluiceError("bad_selector", "expected 40 hexadecimal digits");
    const lease = await engine.acquire({ kind: "infohash", infohash });
    try {
      const index = Number(c.req.param("index"));
      if (!lease.transfer.files.some((file) => file.index === index)) {
        throw new SluiceError("no_such_file", `there is no file ${c.req.param("index").slice(0, 20)}`);
      }
      const { tracks } = await lease.transfer.media(index, undefined, c.req.raw.signal);
      const spoken = tracks.filter(({ kind }) => kind === "audio").map(({ language }) => language);
      return c.json([...new Set(spoken)], 200, { "cache-control": "no-store" });
    } finally {
      lease.release();
    }
  });
  return app;
}
