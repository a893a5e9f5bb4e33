import { type Context, Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import type { Item } from "../src/library/contract.ts";
import type { Library } from "../src/library/library.ts";
import { AccountStreams } from "./account-streams.ts";
import { catchUpResponse, spanFrom } from "./catch-up.ts";
import { createItemPlayer, inGroups } from "./channel-list.ts";
import { unixNow } from "./control/guide.ts";
import { baseUrl } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { exportResponse, guideResponse } from "./playlist-export.ts";
import { TUNER_COUNT } from "./tuner.ts";
import { XtreamLists, xtreamTime } from "./xtream-lists.ts";

/**
 * Serves the part of the Xtream Codes API that television apps use: `player_api.php`, `get.php`, `xmltv.php`, and streams at
 * `/live/<user>/<password>/<id>.ts` and `/movie/…`, and past programmes at `/timeshift/…`. Users are the accounts of the engine; the access rules of all routes apply as well.
 * Ids are item ids. Series are not offered, and the lists say so. Times are UTC.
 *
 * CHOICE(xtream-links): the URLs of `get.php` are those of other exports, so that a list contains no passwords. The list of an account
 * with limits contains its password, because other URLs could not be limited.
 */
export function createXtreamRoutes(
  dependencies: RouteDependencies & { readonly library: Library },
): Hono<RouteEnv> {
  const { library } = dependencies;
  const streams = new AccountStreams(dependencies.engine);
  const playItem = createItemPlayer(dependencies);
  const isUser = (c: Context<RouteEnv>, user = "", password = "") =>
    library.accounts.isPassword(user, password, c.env.origin.remote.host);
  const isQueryUser = (c: Context<RouteEnv>) => isUser(c, c.req.query("username"), c.req.query("password"));
  const requireUser = async (is: Promise<boolean>) => {
    if (!(await is)) throw new SluiceError("auth_error", "wrong user name or password");
  };

  const app = new Hono<RouteEnv>();
  app.get("/player_api.php", async (c) => {
    // Apps learn from this answer, not from a status, that the password is wrong.
    if (!(await isQueryUser(c))) return c.json({ user_info: { auth: 0 } });
    const action = c.req.query("action") ?? "";
    // Without an action, and for those that only some servers know (`get_profile`), the answer is the profile.
    const account = accountOf(c);
    const { groups, maxStreams } = await library.accounts.limits(account);
    const lists = new XtreamLists(dependencies, groups);
    const profile = () => profileOf(c, { max: maxStreams || TUNER_COUNT, open: streams.open(account) });
    return c.json((await lists.answer(action, c.req.query(), baseUrl(c))) ?? profile());
  });
  app.get("/get.php", async (c) => {
    await requireUser(isQueryUser(c));
    const protocol = c.req.query("output") === "hls" || c.req.query("output") === "m3u8" ? "hls" : "http";
    const limits = await library.accounts.limits(accountOf(c));
    const isLimited = limits.groups.length > 0 || limits.maxStreams > 0;
    const links = isLimited ? { linkOf: (item: Item) => accountLink(c, item, protocol) } : {};
    return exportResponse(c, dependencies, inGroups(limits.groups), { protocol, format: "m3u" }, links);
  });
  app.get("/xmltv.php", async (c) => {
    await requireUser(isQueryUser(c));
    const { groups } = await library.accounts.limits(accountOf(c));
    return guideResponse(c, library, { part: inGroups(groups) });
  });
  const play = async (c: Context<RouteEnv>) => {
    await requireUser(isUser(c, c.req.param("user"), c.req.param("password")));
    const [, id, ending] = /^(\d{1,15})(?:\.(\w{1,5}))?$/.exec(c.req.param("stream") ?? "") ?? [];
    if (id === undefined) throw new SluiceError("unknown_item", "expected the id of a stream");
    const account = accountOf(c);
    const { groups, maxStreams } = await library.accounts.limits(account);
    const item = await new XtreamLists(dependencies, groups).item(id);
    const response = await playItem(c, item.id, parametersOf(c, ending));
    return streams.add(account, c.env.origin.remote.host, maxStreams, response);
  };
  const playPast = async (c: Context<RouteEnv>, asked: PastStream) => {
    const { user, password, stream, start, minutes } = asked;
    await requireUser(isUser(c, user, password));
    const { catchUp } = dependencies;
    const [, id, ending] = /^(\d{1,15})(?:\.(\w{1,5}))?$/.exec(stream) ?? [];
    if (id === undefined || catchUp === undefined)
      throw new SluiceError("unknown_item", "this stream has no catch-up");
    const account = normalAccount(user);
    const { groups, maxStreams } = await library.accounts.limits(account);
    const item = await new XtreamLists(dependencies, groups).item(id);
    const span = spanFrom(pastTime(start), 60 * Math.floor(Number(minutes)));
    const form = ending === "m3u8" ? "m3u8" : "ts";
    const response = await catchUpResponse(c, { catchUp, library }, item, span, form);
    return streams.add(account, c.env.origin.remote.host, maxStreams, response);
  };
  app.get("/timeshift/:user/:password/:minutes/:start/:stream", (c) => playPast(c, c.req.param()));
  app.get("/streaming/timeshift.php", (c) => {
    const { username = "", password = "", duration = "", start = "", stream = "" } = c.req.query();
    const ending = c.req.query("extension") === "m3u8" ? ".m3u8" : "";
    return playPast(c, { user: username, password, minutes: duration, start, stream: stream + ending });
  });
  app.get("/live/:user/:password/:stream", play);
  app.get("/movie/:user/:password/:stream", play);
  // Some apps leave out the first part. Account names contain an @, so no other address has this form.
  app.get("/:user{[^/]+(?:@|%40)[^/]+}/:password/:stream", play);
  return app;
}

/** A request for a past time: `start` such as `2026-11-23:20-15` in UTC, `minutes` its duration. */
interface PastStream {
  readonly user: string;
  readonly password: string;
  readonly stream: string;
  readonly start: string;
  readonly minutes: string;
}

/** Returns UNIX seconds, 0 if the text is no time; players write `2026-11-23:20-15`, `2026-11-23 20:15:00` or UNIX time. */
function pastTime(text: string): number {
  if (/^\d{9,11}$/.test(text)) return Number(text);
  const parts = /^(\d{4}-\d\d-\d\d)[:_ T](\d\d)[-:](\d\d)(?:[-:](\d\d))?$/.exec(text);
  if (parts === null) return 0;
  const [, day, hour, minute, second = "00"] = parts;
  const ms = Date.parse(`${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(ms) ? 0 : ms / 1000;
}

/** Films are played in the form in which players can seek. */
function parametersOf(c: Context<RouteEnv>, ending: string | undefined): Record<string, string> {
  if (ending === "m3u8") return { protocol: "hls" };
  return c.req.path.startsWith("/movie/") ? { container: "raw" } : {};
}

/** Returns the account that the path or the query names, in one spelling. */
function accountOf(c: Context<RouteEnv>): string {
  return normalAccount(c.req.param("user") ?? c.req.query("username") ?? "");
}

function normalAccount(name: string): string {
  return name.normalize("NFKC").trim().toLowerCase();
}

/** Returns the URL of an item's stream for the account of a request. */
function accountLink(c: Context<RouteEnv>, { id, isLive }: Item, protocol: "http" | "hls"): string {
  const [user = "", password = ""] = [c.req.query("username"), c.req.query("password")];
  const account = `${encodeURIComponent(user)}/${encodeURIComponent(password)}`;
  const [kind, ending] = isLive === 0 ? ["movie", "mp4"] : ["live", protocol === "hls" ? "m3u8" : "ts"];
  return `${baseUrl(c)}/${kind}/${account}/${id}.${ending}`;
}

function profileOf(c: Context<RouteEnv>, connections: { readonly open: number; readonly max: number }) {
  const url = new URL(baseUrl(c));
  const now = unixNow();
  const isHttps = url.protocol === "https:";
  const port = url.port || (isHttps ? "443" : "80");
  return {
    user_info: {
      username: c.req.query("username"),
      password: c.req.query("password"),
      message: "",
      auth: 1,
      status: "Active",
      exp_date: null,
      is_trial: "0",
      active_cons: String(connections.open),
      created_at: "0",
      max_connections: String(connections.max),
      allowed_output_formats: ["ts", "m3u8"],
    },
    server_info: {
      url: url.hostname,
      port: isHttps ? "" : port,
      https_port: isHttps ? port : "",
      server_protocol: isHttps ? "https" : "http",
      rtmp_port: "",
      timezone: "UTC",
      timestamp_now: now,
      time_now: xtreamTime(now),
    },
  };
}
