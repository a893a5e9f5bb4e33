import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import { gate } from "./access.ts";
import { policyOf } from "./access-paths.ts";
import { createTrackerRoutes } from "./announce.ts";
import { createControlRoutes } from "./control/control.ts";
import { createDiagnosisRoutes } from "./diagnosis.ts";
import { createDocsRoutes } from "./docs.ts";
import { createEngineVersionRoutes } from "./engine-version.ts";
import { failure } from "./envelope.ts";
import { explain } from "./errors.ts";
import { createFileRoutes } from "./files.ts";
import type { House, RouteEnv } from "./house.ts";
import { createImageRoutes } from "./image.ts";
import { createPlayLinkRoutes } from "./play-links.ts";
import { createPlaybackRoutes } from "./playback.ts";
import { createExportRoutes } from "./playlist-export.ts";
import { createSearchRoutes } from "./search.ts";
import { createSegmentRoutes } from "./segments.ts";
import { createSessionRoutes } from "./session.ts";
import { textAnswer } from "./text-answer.ts";

/** The HTTP interface: `fetch(request, { origin })`. It keeps no state; everything is asked of the engine. */
export function createApp(house: House): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.use("*", async (c, next) => {
    await next();
    secureHeaders(c);
  });
  app.use("*", gate(house));
  const open = cors({
    origin: "*",
    allowMethods: ["GET", "HEAD", "POST"],
    exposeHeaders: ["content-range", "content-length", "accept-ranges", "etag"],
    maxAge: 600,
  });
  app.use("*", (c, next) => (policyOf(c.req.path) === "open" ? open(c, next) : next()));
  app.route("/", createPlaybackRoutes(house));
  app.route("/", createSessionRoutes(house));
  app.route("/", createSegmentRoutes(house));
  app.route("/", createFileRoutes(house));
  const { library, diagnose } = house;
  if (library !== undefined) {
    app.route("/", createControlRoutes({ ...house, library }));
    app.route("/", createExportRoutes(library));
    app.route("/", createSearchRoutes({ ...house, library }));
    app.route("/", createPlayLinkRoutes({ ...house, library }));
    app.route("/", createImageRoutes(library));
    if (diagnose) app.route("/", createDiagnosisRoutes({ ...house, library, diagnose }));
  }
  if (house.tracker !== undefined) app.route("/", createTrackerRoutes(house.tracker));
  app.route("/", createEngineVersionRoutes(house));
  app.route("/", createDocsRoutes(house));
  app.notFound((c) => c.text("no such address\n", 404));
  app.onError((thrown, c) => errorAnswer(c, thrown));
  return app;
}

/** What every answer says, and who may embed it where the route has not said so itself. */
function secureHeaders({ req, res: { headers } }: Context): void {
  headers.set("x-content-type-options", "nosniff");
  // A page of the Internet that may read an answer may also come for it into this network (Private Network Access).
  if (
    req.header("access-control-request-private-network") === "true" &&
    headers.has("access-control-allow-origin")
  )
    headers.set("access-control-allow-private-network", "true");
  if (headers.has("cross-origin-resource-policy")) return;
  const isOpen = policyOf(req.path) === "open" || headers.has("access-control-allow-origin");
  headers.set("cross-origin-resource-policy", isOpen ? "cross-origin" : "same-origin");
}

/** The paths whose answers are JSON whether or not the query asks for it. */
const JSON_PATHS = /^\/ace\/(?:stat|cmd|event)\//;

function errorAnswer(c: Context, thrown: unknown): Response {
  const error = explain(thrown);
  // A bug of ours: whoever serves us says so in the log, with its trace.
  if (!error) throw thrown;
  const apiVersion = c.req.query("api_version");
  if (JSON_PATHS.test(c.req.path)) {
    if (apiVersion === "2" || apiVersion === "3")
      return failure(c, "result", { message: error.text, code: 0 });
    return failure(c, "response", error.text);
  }
  if (c.req.query("format") === "json") return failure(c, "response", error.text);
  return textAnswer(c, `${error.text}\n`, "text/plain; charset=utf-8", error.status);
}
