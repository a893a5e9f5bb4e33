import { type Context, Hono } from "hono";
import type { Activity, SpeedSample } from "../src/activity/activity-contract.ts";
import { SluiceError } from "../src/base/errors.ts";
import { parseInfohash } from "../src/base/ids.ts";
import { encodeUtf8 } from "../src/base/utf8.ts";
import type { Library } from "../src/library/library.ts";
import { authorizeCaller, authorizeOwner } from "./control/authorize.ts";
import { presentBroadcast } from "./control/broadcast.ts";
import { presentDownload } from "./control/download.ts";
import { presentActivity } from "./control/present-activity.ts";
import { presentRecording } from "./control/recording.ts";
import { presentRelay } from "./control/relay.ts";
import { presentTaskStatus } from "./control/service-lists.ts";
import { clientOf } from "./control/service-players.ts";
import { DeviceEvents } from "./device-events.ts";
import { baseUrl, clientNetworkOf } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { describeError } from "./http/errors.ts";
import { ItemTitles } from "./http/known-items.ts";
import { presentInfo } from "./present.ts";

/** The stream names players, peers and content, so clients of other hosts need the token. */
const ACCESS = { name: "events", isPublic: false, isRemote: true, isCrossOrigin: false } as const;
/** The same as of `get_available_players` and `aircast_get_status`. */
const DEVICE_ACCESS = {
  name: "players_events",
  isPublic: true,
  isRemote: true,
  isCrossOrigin: false,
} as const;

/** More rows than a page shows. */
const MAX_ROWS = 200;
/** Ticks, that is, seconds. */
const SIGN_OF_LIFE_TICKS = 5;

type EventDependencies = RouteDependencies & { readonly library: Library; readonly activity: Activity };

/**
 * Serves live data as server-sent events (HTML standard 9.2). `GET /api/events`: those of the Control room and the Studio. Once a second
 * each section that has changed is sent whole; log lines and speeds are sent as they are added. There is a sample of the
 * speeds every five seconds, so a stream that is silent for longer is broken. `?session=<infohash>/<key>` adds the state of this session
 * once a second, for a page that also plays; `?players=1` the players, and `?device=<id>` what a device does, for a page that casts.
 * `GET /ace/stat/<infohash>/<key>/events` sends only the session, to every client that knows the key, and `GET /api/players/events` only
 * players and a device, to clients without the token.
 */
export function createEventRoutes(dependencies: EventDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const { activity } = dependencies;
  const describe = sharedDescription(dependencies);
  const sessionEvent = sessionEvents(dependencies);
  /** The streams of single sessions by key. There is one for each, so that a client cannot hold any number of them. */
  const bySession = new Map<string, () => void>();
  app.get("/api/events", async (c) => {
    await authorizeOwner(ACCESS, c, dependencies);
    const isHost = clientNetworkOf(c.env.origin) === "local";
    const base = baseUrl(c);
    const [infohash = "", key = ""] = c.req.query("session")?.split("/") ?? [];
    const updates = new Updates(activity);
    const devices = deviceEvents(c);
    return eventStream(activity.ticks("engine"), async (tick) => {
      const own = key === "" ? "" : (await sessionEvent(infohash, key)).text;
      const described = await describe(tick, isHost, base);
      // Not shared, so that a new stream has a task that was started before it.
      const tasks = JSON.stringify(presentTasks(dependencies.library));
      const text = updates.textOf([...described, ["tasks", tasks]]);
      return { text: own + (await devices()) + text, isLast: false };
    }).response;
  });
  app.get("/api/players/events", (c) => {
    authorizeCaller(DEVICE_ACCESS, c, dependencies);
    const devices = deviceEvents(c);
    return eventStream(activity.ticks("devices"), async (tick) => {
      // A comment, because a stream that is silent is broken.
      const text = (await devices()) || (tick % SIGN_OF_LIFE_TICKS === 0 ? ": \n\n" : "");
      return { text, isLast: false };
    }).response;
  });
  app.get("/ace/stat/:infohash/:key/events", async (c) => {
    const { infohash, key } = c.req.param();
    const { isLast, text } = await sessionEvent(infohash, key);
    if (isLast) return eventResponse(text);
    bySession.get(key)?.();
    const { response, end } = eventStream(
      activity.ticks("session"),
      () => sessionEvent(infohash, key),
      () => bySession.get(key) === end && bySession.delete(key),
    );
    bySession.set(key, end);
    return response;
  });
  return app;

  function deviceEvents(c: Context<RouteEnv>): () => Promise<string> {
    const device = c.req.query("device");
    if (device === undefined && c.req.query("players") === undefined) return async () => "";
    const devices = new DeviceEvents(dependencies.players, clientOf(c), device);
    return async () => {
      const news = await devices.next();
      return news === undefined ? "" : event(news.name, news.json);
    };
  }
}

/** The tasks that started last, the last one first. */
function presentTasks({ tasks }: Library) {
  const all = [...tasks.list()].sort((a, b) => b.id - a.id);
  return all.slice(0, MAX_ROWS).map(presentTaskStatus);
}

/** What a tick adds to a stream; an empty text adds nothing. */
interface TickEvents {
  readonly text: string;
  readonly isLast: boolean;
}

/** Streams what `next` returns for each tick. `ended` is called when the client leaves, after the last event, and after `end`. */
function eventStream(
  ticks: ReadableStream<number>,
  next: (tick: number) => Promise<TickEvents>,
  ended: () => void = () => {},
): { readonly response: Response; readonly end: () => void } {
  const reader = ticks.getReader();
  const end = () => {
    ended();
    return reader.cancel();
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let events: TickEvents = { text: "", isLast: false };
        while (events.text === "") {
          const { value: tick, done } = await reader.read();
          if (done) return controller.close();
          events = await next(tick);
        }
        controller.enqueue(encodeUtf8(events.text));
        if (!events.isLast) return;
        controller.close();
        await end();
      },
      cancel: end,
    },
    // A page that does not read gets no ticks, and costs nothing.
    { highWaterMark: 0 },
  );
  return { response: eventResponse(stream), end };
}

function eventResponse(body: ReadableStream<Uint8Array> | string): Response {
  return new Response(body, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      // nginx would hold the events back.
      "x-accel-buffering": "no",
    },
  });
}

/** Returns the state of a session as an event: what its stat URL returns, or why there is no such session any more. */
function sessionEvents({ engine }: EventDependencies) {
  return async (infohash: string, key: string): Promise<TickEvents> => {
    const hash = parseInfohash(infohash);
    const session = hash && engine.session(hash, key);
    try {
      if (!session) throw new SluiceError("unknown_session", "the session does not exist or has ended");
      // A page that shows a paused picture still plays it.
      session.touch();
      const info = presentInfo(session, await session.info(), engine.settings.compat);
      return { text: event("session", JSON.stringify(info)), isLast: false };
    } catch (thrown) {
      const problem = describeError(thrown)?.text;
      if (problem === undefined) throw thrown;
      return { text: event("session", JSON.stringify({ ended: problem })), isLast: true };
    }
  };
}

/** The sections by name, each as JSON. */
type Sections = ReadonlyMap<string, string>;

/** Describes the engine once a tick for all streams with the same rights, because the description is the expensive part. */
function sharedDescription(dependencies: EventDependencies) {
  const { engine, library, broadcasts, recordings, version } = dependencies;
  const titles = new ItemTitles();
  let current: { readonly tick: number; readonly byReader: Map<string, Promise<Sections>> } | undefined;
  const describe = async (isHost: boolean, base: string): Promise<Sections> => {
    const { sessions, transfers } = presentActivity(engine.activity(), isHost);
    const { available, limit, activeInUse, inactiveInUse, memoryInUse } = await engine.cacheFigures();
    const down = transfers.reduce((sum, { speed_down }) => sum + speed_down, 0);
    const up = transfers.reduce((sum, { speed_up }) => sum + speed_up, 0);
    const cache = {
      free: available,
      limit,
      active: activeInUse,
      inactive: inactiveInUse,
      memory: memoryInUse,
    };
    const downloaded = (dependencies.downloads?.list() ?? []).slice(0, MAX_ROWS).map(presentDownload);
    const sections = {
      status: { version, speed_down: down, speed_up: up, cache },
      sessions,
      transfers: await titles.name(transfers, library.items),
      broadcasts: (broadcasts?.list() ?? []).map((each) => presentBroadcast(each, isHost)),
      relays: (dependencies.relays?.list() ?? []).map(presentRelay),
      // The chosen files can be thousands; download_list has them.
      downloads: downloaded.map(({ files: _, ...download }) => download),
      recordings: recordings?.list().map((each) => presentRecording(each, recordings, base)) ?? [],
    };
    return new Map(Object.entries(sections).map(([name, value]) => [name, JSON.stringify(value)]));
  };
  return (tick: number, isHost: boolean, base: string): Promise<Sections> => {
    if (current?.tick !== tick) current = { tick, byReader: new Map() };
    const reader = `${isHost} ${base}`;
    const known = current.byReader.get(reader) ?? describe(isHost, base);
    current.byReader.set(reader, known);
    return known;
  };
}

/** What one stream has sent already. */
class Updates {
  readonly #activity: Activity;
  readonly #sent = new Map<string, string>();
  #logNumber = 0;
  #sampledAt = 0;

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  /** Returns the events since the last call; an empty text if there is none. */
  textOf(sections: Iterable<readonly [name: string, json: string]>): string {
    let text = "";
    for (const [name, json] of sections) {
      if (this.#sent.get(name) === json) continue;
      this.#sent.set(name, json);
      text += event(name, json);
    }
    const speeds = this.#activity.speeds.filter(({ at }) => at > this.#sampledAt);
    if (speeds.length > 0) text += event("speeds", JSON.stringify(speeds.map(presentSample)));
    this.#sampledAt = speeds.at(-1)?.at ?? this.#sampledAt;
    const lines = this.#activity.logAfter(this.#logNumber);
    if (lines.length > 0) text += event("log", JSON.stringify(lines));
    this.#logNumber = lines.at(-1)?.number ?? this.#logNumber;
    return text;
  }
}

function event(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`;
}

/** A sample as `[time, down, up, {infohash: [down, up]}]`, because there are hundreds. */
function presentSample({ at, down, up, transfers }: SpeedSample) {
  return [at, down, up, Object.fromEntries(transfers.map((each) => [each.infohash, [each.down, each.up]]))];
}
