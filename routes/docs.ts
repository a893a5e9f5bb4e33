import { type Context, Hono } from "hono";
import { baseUrl } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import type { OpenApiDocument } from "./openapi.ts";

/** Allows only the page's own style sheet: no scripts, no forms, no other servers. */
const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  // Browsers revalidate at each visit, so that they load a new version of the program.
  "cache-control": "no-cache",
};

/** Serves the interface description: `/openapi.json`, and as a web page at `/docs`. */
export function createDocsRoutes({ version }: Pick<RouteDependencies, "version">): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  // Loaded and built at the first request, because that would take longer than the rest of the engine's start.
  let built: Promise<OpenApiDocument> | undefined;
  const document = () => {
    built ??= import("./openapi.ts").then(({ openApiDocument }) => openApiDocument(version));
    return built;
  };
  app.get("/openapi.json", async (c) =>
    c.body(JSON.stringify(await document()), 200, {
      "content-type": "application/json",
      "cache-control": "no-cache",
    }),
  );
  const page = async (c: Context<RouteEnv>) => {
    const { docsPage } = await import("./docs-page.ts");
    return c.body(docsPage(await document(), baseUrl(c)), 200, {
      "content-type": "text/html; charset=utf-8",
      ...PAGE_HEADERS,
    });
  };
  app.get("/docs", page);
  app.get("/docs/", page);
  app.get("/docs/style.css", (c) =>
    c.body(DOCS_STYLE, 200, { "content-type": "text/css; charset=utf-8", "cache-control": "no-cache" }),
  );
  return app;
}

/** The style sheet of `/docs`: the colours of the start page, light and dark, readable on a phone. */
const DOCS_STYLE = `:root {
  color-scheme: light dark;
  --ground: #f3f6f8; --card: #fff; --line: #d9e1e7; --text: #14212b; --soft: #5a6b78; --accent: #0e7490;
  --code: #e9eff3; --green: #166534; --amber: #92400e; --violet: #5b21b6; --grey: #475569;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0c1318; --card: #141e25; --line: #25333d; --text: #e6eef3; --soft: #8fa3b0; --accent: #22b8d6;
    --code: #1c2a33; --green: #4ade80; --amber: #fbbf24; --violet: #c4b5fd; --grey: #94a3b8;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 3.5rem; }
body { margin: 0; background: var(--ground); color: var(--text); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
header, main { max-width: 60rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1 { margin: 0; font-size: 1.6rem; letter-spacing: -0.02em; }
h1 small { color: var(--soft); font-weight: 400; font-size: 1rem; }
h2 { margin: 2.5rem 0 0.25rem; font-size: 1.3rem; }
h3 { margin: 0; font: 600 1rem/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
h3 a { color: inherit; text-decoration: none; }
h3 a:hover { text-decoration: underline; }
a { color: var(--accent); }
p { margin: 0.4rem 0; }
nav { position: sticky; top: 0; z-index: 1; display: flex; gap: 1rem; max-width: 60rem; margin: 1rem auto 0; padding: 0.6rem 1rem;
  overflow-x: auto; white-space: nowrap; background: var(--ground); border-bottom: 1px solid var(--line); }
nav a { text-decoration: none; }
article { margin: 0.9rem 0; padding: 0.9rem 1rem; background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; }
.badge { display: inline-block; margin-left: 0.25rem; padding: 0 0.5rem; border: 1px solid currentColor; border-radius: 1rem;
  font: 500 0.72rem/1.5 system-ui, sans-serif; vertical-align: 0.08rem; white-space: nowrap; }
.badge.public { color: var(--green); } .badge.token { color: var(--amber); } .badge.local { color: var(--violet); }
.badge.pages { color: var(--accent); } .badge.extra { color: var(--grey); }
.legend { margin: 0.75rem 0; padding: 0; list-style: none; }
.legend li { margin: 0.2rem 0; }
.wide { overflow-x: auto; }
table { width: 100%; margin: 0.5rem 0; border-collapse: collapse; font-size: 0.9rem; }
th { color: var(--soft); font-weight: 500; text-align: left; }
th, td { padding: 0.3rem 0.75rem 0.3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td b { color: var(--amber); font-size: 0.75rem; font-weight: 500; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.86em; }
pre { margin: 0.5rem 0; padding: 0.6rem 0.75rem; overflow-x: auto; background: var(--code); border-radius: 0.4rem; }
summary { color: var(--soft); font-size: 0.9rem; cursor: pointer; }
main { padding-bottom: 4rem; }
@media (max-width: 36rem) {
  .parameters thead { display: none; }
  .parameters table, .parameters tbody, .parameters tr { display: block; }
  .parameters tr { padding: 0.35rem 0; border-bottom: 1px solid var(--line); }
  .parameters td { display: inline; padding: 0; border: 0; }
  .parameters td:nth-child(2) { margin-left: 0.5rem; color: var(--soft); }
  .parameters td:nth-child(3) { display: block; }
}
`;
