import { Hono } from "hono";
import type { Activity, SpeedSample } from "../src/activity/activity-contract.ts";
import { encodeUtf8 } from "../src/base/utf8.ts";
import type { Library } from "../src/library/library.ts";
import { authorizeOwner } from "./control/authorize.ts";
import { presentBroadcast } from "./control/broadcast.ts";
import { presentDownload } from "./control/download.ts";
import { presentActivity } from "./control/present-activity.ts";
import { presentRecording } from "./control/recording.ts";
import { baseUrl, clientNetworkOf } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";

/** The stream names players, peers and content, so clients of other hosts need the token. */
const ACCESS = { name: "events", isPublic: false, isRemote: true, isCrossOrigin: false } as const;

/** More rows than a page shows. */
const MAX_DOWNLOADS = 200;

type EventDependencies = RouteDependencies & { readonly library: Library; readonly activity: Activity };

/**
 * Serves `GET /api/events`: the live data of the Control room and the Studio as server-sent events (HTML standard 9.2). Once a
 * second each section that has changed is sent whole; log lines and speeds are sent as they are added. There is a sample of the
 * speeds every five seconds, so a stream that is silent for longer is broken.
 */
export function createEventRoutes(dependencies: EventDependencies): Hono<RouteEnv> {
  const app = new Hono<RouteEnv>();
  const describe = sharedDescription(dependencies);
  app.get("/api/events", async (c) => {
    await authorizeOwner(ACCESS, c, dependencies);
    const isHost = clientNetworkOf(c.env.origin) === "local";
    const base = baseUrl(c);
    const { activity } = dependencies;
    const updates = new Updates(activity);
    const ticks = activity.ticks().getReader();
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          let text = "";
          while (text === "") {
            const { value: tick, done } = await ticks.read();
            if (done) return;
            text = updates.textOf(await describe(tick, isHost, base));
          }
          controller.enqueue(encodeUtf8(text));
        },
        cancel: (reason) => ticks.cancel(reason),
      },
      // A page that does not read gets no ticks, and costs nothing.
      { highWaterMark: 0 },
    );
    return new Response(stream, {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        // nginx would hold the events back.
        "x-accel-buffering": "no",
      },
    });
  });
  return app;
}

/** The sections by name, each as JSON. */
type Sections = ReadonlyMap<string, string>;

/** Describes the engine once a tick for all streams with the same rights, because the description is the expensive part. */
function sharedDescription(dependencies: EventDependencies) {
  const { engine, broadcasts, recordings, version } = dependencies;
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
    const downloaded = (dependencies.downloads?.list() ?? []).slice(0, MAX_DOWNLOADS).map(presentDownload);
    const sections = {
      status: { version, speed_down: down, speed_up: up, cache },
      sessions,
      transfers,
      broadcasts: (broadcasts?.list() ?? []).map((each) => presentBroadcast(each, isHost)),
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
  textOf(sections: Sections): string {
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
