import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import { createCatchUpRoutes } from "./catch-up.ts";
import { clusterMiddleware, drainMiddleware, START_PATHS } from "./cluster.ts";
import { engineMiddleware } from "./cluster-proxy.ts";
import { createControlRoutes } from "./control/control.ts";
import { createSearchRoutes } from "./control/search.ts";
import { createDiagnosisRoutes } from "./diagnosis.ts";
import { createDlnaRoutes } from "./dlna.ts";
import { createDocsRoutes } from "./docs.ts";
import { createEngineVersionRoutes } from "./engine-version.ts";
import { createEventRoutes } from "./events.ts";
import { createFileRoutes, createImageRoutes } from "./files.ts";
import { accessMiddleware, policyOf } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { describeError } from "./http/errors.ts";
import { requestReport } from "./http/request-report.ts";
import { failure, textResponse } from "./http/responses.ts";
import { createOperationsRoutes } from "./operations.ts";
import { createPlayLinkRoutes } from "./play-links.ts";
import { createPlaybackRoutes } from "./playback.ts";
import { createExportRoutes } from "./playlist-export.ts";
import { createRecordingRoutes } from "./recordings.ts";
import { createRestoreRoutes } from "./restore.ts";
import { createSegmentRoutes } from "./segments.ts";
import { createSessionRoutes } from "./session.ts";
import { createSharedRoutes } from "./shared.ts";
import { createSubtitleRoutes } from "./subtitles.ts";
import { createSwarmRoutes } from "./swarm.ts";
import { createTrackerRoutes } from "./tracker.ts";
import { createTunerRoutes } from "./tuner.ts";
import { createXtreamRoutes } from "./xtream.ts";

/** Creates the HTTP interface, called as `fetch(request, { origin })`. It holds no state: every answer comes from the engine. */
export function createApp(dependencies: RouteDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.use("*", async (c, next) => {
    await next();
    setSecurityHeaders(c);
    // The body of a response to HEAD is never read: what it holds would never be released.
    if (c.req.method === "HEAD") await c.res.body?.cancel();
  });
  const { operations } = dependencies;
  if (operations) app.use("*", requestReport(operations));
  app.use("*", accessMiddleware(dependencies));
  const open = cors({
    origin: "*",
    allowMethods: ["GET", "HEAD", "POST"],
    exposeHeaders: ["content-range", "content-length", "accept-ranges", "etag"],
    maxAge: 600,
  });
  app.use("*", (c, next) => (policyOf(c.req.path) === "open" ? open(c, next) : next()));
  const { cluster, engineProxy } = dependencies;
  if (cluster) {
    for (const path of START_PATHS) app.use(path, clusterMiddleware(cluster, engineProxy));
    for (const kind of ["m", "r"])
      app.use(`/ace/${kind}/:infohash/:key`, drainMiddleware(cluster, dependencies.engine, engineProxy));
    if (engineProxy) app.use("/engine/*", engineMiddleware(cluster, engineProxy));
  }
  app.route("/", createPlaybackRoutes(dependencies));
  app.route("/", createSessionRoutes(dependencies));
  app.route("/", createSegmentRoutes(dependencies));
  app.route("/", createSharedRoutes(dependencies));
  app.route("/", createFileRoutes(dependencies));
  app.route("/", createSubtitleRoutes(dependencies));
  app.route("/", createSwarmRoutes(dependencies));
  const { library, diagnose, activity, restore } = dependencies;
  if (library !== undefined) {
    app.route("/", createControlRoutes({ ...dependencies, library }));
    app.route("/", createExportRoutes({ ...dependencies, library }));
    app.route("/", createSearchRoutes({ ...dependencies, library }));
    app.route("/", createPlayLinkRoutes({ ...dependencies, library }));
    app.route("/", createImageRoutes(library));
    if (dependencies.tunerId !== undefined)
      app.route("/", createTunerRoutes({ ...dependencies, library, tunerId: dependencies.tunerId }));
    if (dependencies.mediaServer !== undefined)
      app.route("/", createDlnaRoutes({ ...dependencies, library, mediaServer: dependencies.mediaServer }));
    if (dependencies.servesXtream) app.route("/", createXtreamRoutes({ ...dependencies, library }));
    if (restore) app.route("/", createRestoreRoutes({ ...dependencies, library, restore }));
    if (activity) app.route("/", createEventRoutes({ ...dependencies, library, activity }));
    const { catchUp } = dependencies;
    if (catchUp !== undefined) app.route("/", createCatchUpRoutes({ catchUp, library }));
    if (operations) app.route("/", createOperationsRoutes({ ...dependencies, library, operations }));
    if (diagnose) app.route("/", createDiagnosisRoutes({ ...dependencies, library, diagnose }));
  }
  if (dependencies.recordings) app.route("/", createRecordingRoutes(dependencies.recordings));
  if (dependencies.tracker !== undefined) app.route("/", createTrackerRoutes(dependencies.tracker));
  app.route("/", createEngineVersionRoutes(dependencies));
  app.route("/", createDocsRoutes(dependencies));
  app.notFound((c) => c.text("no such address\n", 404));
  app.onError((thrown, c) => errorResponse(c, thrown));
  return app;
}

/** Sets the headers that every response has, and the embedding policy unless the route has set its own. */
function setSecurityHeaders({ req, res: { headers } }: Context): void {
  headers.set("x-content-type-options", "nosniff");
  // A page of the Internet that may read a response may also request it from this network (Private Network Access).
  if (
    req.header("access-control-request-private-network") === "true" &&
    headers.has("access-control-allow-origin")
  )
    headers.set("access-control-allow-private-network", "true");
  if (headers.has("cross-origin-resource-policy")) return;
  const isOpen = policyOf(req.path) === "open" || headers.has("access-control-allow-origin");
  headers.set("cross-origin-resource-policy", isOpen ? "cross-origin" : "same-origin");
}

/** Paths that answer JSON even if the query does not request it. */
const JSON_PATHS = /^\/ace\/(?:stat|cmd|event)\//;

function errorResponse(c: Context, thrown: unknown): Response {
  const error = describeError(thrown);
  // A bug: the HTTP server logs it with its stack trace.
  if (!error) throw thrown;
  const isJsonPath = JSON_PATHS.test(c.req.path);
  const version = c.req.query("api_version");
  if (isJsonPath && (version === "2" || version === "3"))
    return failure(c, "result", { message: error.text, code: 0 });
  if (isJsonPath || c.req.query("format") === "json") return failure(c, "response", error.text);
  return textResponse(c, `${error.text}\n`, "text/plain; charset=utf-8", error.status);
}
