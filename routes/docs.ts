import { type Context, Hono } from "hono";
import { baseUrl } from "./access.ts";
import { docsPage } from "./docs-page.ts";
import { DOCS_STYLE } from "./docs-style.ts";
import type { House, RouteEnv } from "./house.ts";
import { openApiDocument } from "./openapi.ts";

/** The page may show itself and its style sheet; no script at all, no form, nothing from elsewhere. */
const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  // A new version of the program must show at the next visit.
  "cache-control": "no-cache",
};

/** `/openapi.json`, and the same for people at `/docs`. */
export function createDocsRoutes({ version }: Pick<House, "version">): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const document = openApiDocument(version);
  const json = JSON.stringify(document);
  app.get("/openapi.json", (c) =>
    c.body(json, 200, { "content-type": "application/json", "cache-control": "no-cache" }),
  );
  const page = (c: Context<RouteEnv>) =>
    c.body(docsPage(document, baseUrl(c)), 200, {
      "content-type": "text/html; charset=utf-8",
      ...PAGE_HEADERS,
    });
  app.get("/docs", page);
  app.get("/docs/", page);
  app.get("/docs/style.css", (c) =>
    c.body(DOCS_STYLE, 200, { "content-type": "text/css; charset=utf-8", "cache-control": "no-cache" }),
  );
  return app;
}
