import { type Context, Hono, type MiddlewareHandler } from "hono";
import { SluiceError } from "../../src/base/errors.ts";
import type { Library } from "../../src/library/library.ts";
import { allowsPrivateUrls, baseUrl } from "../http/access.ts";
import type { Files, RouteDependencies, RouteEnv } from "../http/dependencies.ts";
import { apiVersionOf, controlFailure, success } from "../http/responses.ts";
import { accountMethods } from "./account.ts";
import { activityMethods } from "./activity.ts";
import { authorizeCaller, authorizeToken, preflight } from "./authorize.ts";
import { backupMethods } from "./backup.ts";
import { senderOf } from "./body-slots.ts";
import { broadcastMethods } from "./broadcast.ts";
import { cacheMethods } from "./cache.ts";
import { catchUpMethods } from "./catch-up.ts";
import { channelSourceMethods } from "./channel-sources.ts";
import { clusterMethods } from "./cluster.ts";
import { downloadMethods } from "./download.ts";
import { externalPlaylistMethods } from "./external-playlist.ts";
import { checkedQuery, FormReader } from "./form.ts";
import { guideMethods } from "./guide.ts";
import type { ControlMethod } from "./method.ts";
import { clipped, firstText } from "./params.ts";
import { editMethods } from "./playlist-edit.ts";
import { flagMethods } from "./playlist-flags.ts";
import { playlistGet, playlistSearch } from "./playlist-get.ts";
import { playlistImport } from "./playlist-import.ts";
import { playlistClear, trashMethods } from "./playlist-trash.ts";
import { recordingMethods } from "./recording.ts";
import { relayMethods } from "./relay.ts";
import { accessMethods } from "./service-access.ts";
import { analysisMethods } from "./service-analysis.ts";
import { contentMethods } from "./service-content.ts";
import { getChannelIcon, getImage } from "./service-images.ts";
import { parseM3uPlaylist, taskMethods } from "./service-lists.ts";
import { castingMethods, playerMethods } from "./service-players.ts";
import { statusMethods, versionMethods } from "./service-status.ts";
import { settingsMethods } from "./settings.ts";
import { watchedMethods } from "./watched.ts";

/** Every control method by section, in the order of the interface; extensions come last in their section. */
export const CONTROL_SECTIONS: readonly {
  readonly title: string;
  readonly methods: readonly ControlMethod[];
}[] = [
  {
    title: "Service",
    methods: [
      ...accessMethods,
      ...playerMethods,
      ...contentMethods,
      getChannelIcon,
      ...analysisMethods,
      ...statusMethods,
      parseM3uPlaylist,
      ...versionMethods,
      ...taskMethods,
      getImage,
      ...castingMethods,
    ],
  },
  {
    title: "Playlist",
    methods: [
      ...editMethods,
      ...trashMethods,
      playlistGet,
      playlistClear,
      ...flagMethods,
      playlistImport,
      playlistSearch,
      ...channelSourceMethods,
    ],
  },
  { title: "External playlists", methods: externalPlaylistMethods },
  { title: "Accounts", methods: accountMethods },
  { title: "Broadcasts", methods: [...broadcastMethods, ...relayMethods] },
  { title: "Programme guides", methods: guideMethods },
  { title: "Catch-up", methods: catchUpMethods },
  { title: "Recordings", methods: recordingMethods },
  { title: "Downloads", methods: downloadMethods },
  { title: "Watched films", methods: watchedMethods },
  { title: "Settings", methods: [...settingsMethods, ...backupMethods] },
  { title: "Activity", methods: activityMethods },
  { title: "Disk cache", methods: cacheMethods },
  { title: "Several engines", methods: clusterMethods },
];

const METHODS: ReadonlyMap<string, ControlMethod> = new Map(
  CONTROL_SECTIONS.flatMap(({ methods }) => methods).map((method) => [method.name, method]),
);

/**
 * CHOICE(service-api): the interface's heading names `/service/api`, its examples `/server/api`: both are served.
 * CHOICE(method-paths): each method has a path of its own, too, because OpenAPI cannot tell methods apart by a query; there
 * `api_version` is 3 by default.
 */
const PATHS = ["/server/api", "/server/api/", "/service/api", "/service/api/", "/server/api/:method{\\w+}"];

/** Serves `/server/api`: finds the method, authorizes the caller, validates the parameters, and runs the method. */
export function createControlRoutes(
  dependencies: RouteDependencies & { readonly library: Library },
): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  app.on("OPTIONS", PATHS, (c) =>
    preflight(METHODS.get(c.req.param("method") ?? c.req.query("method") ?? ""), c, dependencies),
  );
  app.on(["GET", "POST"], PATHS, readCall(dependencies), async (c) => {
    const method = methodOf(firstText(c.req.queries("method")));
    authorizeCaller(method, c, dependencies);
    await authorizeToken(method, c, dependencies, firstText(c.req.queries("token")));
    const { files = {} } = c.env;
    refuseTextFiles(method, c, files);
    const result = await method.answer(c, {
      dependencies,
      library: dependencies.library,
      context: c,
      files,
      apiVersion: apiVersionOf(firstText(c.req.queries("api_version"))),
      allowPrivateUrls: allowsPrivateUrls(c, dependencies),
      base: baseUrl(c),
      signal: c.req.raw.signal,
    });
    if (result instanceof Response) return result;
    const next = c.req.method === "POST" ? localPath(firstText(c.req.queries("redirect"))) : undefined;
    return next === undefined ? success(c, "result", result) : c.redirect(next, 303);
  });
  app.onError((thrown, c) => controlFailure(c, apiVersionText(c), thrown));
  return app;
}

/**
 * Moves the texts of a form and the method of the path to the query, where validators read them, and the files of the form
 * to `c.env`.
 */
function readCall(dependencies: RouteDependencies): MiddlewareHandler<RouteEnv> {
  const forms = new FormReader();
  return async (c, next) => {
    c.header("cache-control", "no-store");
    const path = c.req.param("method");
    const name = path ?? firstText(checkedQuery(c.req.raw).getAll("method"));
    // The query may name the method: then the body of a caller that may not call it is never read.
    if (name !== undefined) authorizeCaller(methodOf(name), c, dependencies);
    const { texts, files } = await forms.read(c.req.raw, senderOf(c.env.origin));
    if (path !== undefined) texts.set("method", path);
    if (path !== undefined && !texts.has("api_version")) texts.set("api_version", "3");
    const url = new URL(c.req.url);
    url.search = texts.toString();
    const { method, headers, signal } = c.req.raw;
    c.req.raw = new Request(url, { method, headers, signal });
    c.env = { ...c.env, files };
    await next();
  };
}

/** The path of a method implies a version, which a failed `readCall` has not moved to the query. */
function apiVersionText(c: Context<RouteEnv>): string | undefined {
  return firstText(c.req.queries("api_version")) ?? (c.req.param("method") === undefined ? undefined : "3");
}

/** Throws `bad_parameter` if a file is given as text. */
function refuseTextFiles(method: ControlMethod, c: Context<RouteEnv>, files: Files): void {
  const name = Object.keys(method.files ?? {}).find(
    (each) => files[each] === undefined && firstText(c.req.queries(each)) !== undefined,
  );
  if (name !== undefined)
    throw new SluiceError(
      "bad_parameter",
      `${name}: expected a file of a multipart/form-data body, got text`,
    );
}

/** Returns the `redirect` of a form if it is a path on this engine; undefined for any other target. */
function localPath(redirect: string | undefined): string | undefined {
  return redirect !== undefined && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,1000}$/.test(redirect)
    ? redirect
    : undefined;
}

function methodOf(name: string | undefined): ControlMethod {
  if (name === undefined) throw new SluiceError("missing_method", "add method=…; see /docs");
  const method = METHODS.get(name);
  if (method) return method;
  const similar = similarName(name, [...METHODS.keys()]);
  throw new SluiceError(
    "unknown_method",
    `${clipped(name)}; ${similar === undefined ? "" : `did you mean ${similar}? `}see /docs`,
  );
}

/** Names with a lower Dice coefficient are not similar. */
const MIN_SIMILARITY = 0.55;

/** Returns the most similar name: the one with the highest Dice coefficient of letter pairs. */
function similarName(name: string, names: readonly string[]): string | undefined {
  const wanted = letterPairs(name.slice(0, 60));
  let best: string | undefined;
  let bestSimilarity = MIN_SIMILARITY;
  for (const candidate of names) {
    const offered = letterPairs(candidate);
    const shared = [...offered].filter((pair) => wanted.has(pair)).length;
    const similarity = (2 * shared) / (wanted.size + offered.size);
    if (similarity <= bestSimilarity) continue;
    best = candidate;
    bestSimilarity = similarity;
  }
  return best;
}

function letterPairs(name: string): Set<string> {
  const text = name.toLowerCase();
  return new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => text.slice(i, i + 2)));
}
