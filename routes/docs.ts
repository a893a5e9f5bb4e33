import { type Context, Hono } from "hono";
import { baseUrl } from "./access.ts";
import { docsPage } from "./docs-page.ts";
import { DOCS_STYLE } from "./docs-style.ts";
import type { House, RouteEnv } from "./house.ts";
import { type OpenApiDocument, openApiDocument } from "./openapi.ts";

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
  // Made when it is first asked for: that takes longer than all else a start does.
  let made: OpenApiDocument | undefined;
  const document = () => {
    made ??= openApiDocument(version);
    return made;
  };
  app.get("/openapi.json", (c) =>
    c.body(JSON.stringify(document()), 200, {
      "content-type": "application/json",
      "cache-control": "no-cache",
    }),
  );
  const page = (c: Context<RouteEnv>) =>
    c.body(docsPage(document(), baseUrl(c)), 200, {
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
