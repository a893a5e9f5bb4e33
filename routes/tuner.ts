import { Hono } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import type { Library } from "../src/library/library.ts";
import { AccountStreams } from "./account-streams.ts";
import { createItemPlayer, numberedChannels } from "./channel-list.ts";
import { baseUrl } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";

/** Number of streams that clients play at the same time; the session limit of the engine applies as well. */
export const TUNER_COUNT = 8;
/** A model that clients know as a plain network tuner without conditional access. */
export const TUNER_MODEL = "HDHR4-2US";
/** The name under which the streams of the tuner are counted. */
const TUNERS = "tuners";
/** What a device answers then (HDHomeRun HTTP Development Guide). */
const ALL_IN_USE = { "x-hdhomerun-error": "805 All Tuners In Use" };

/**
 * Serves the HTTP interface of a network tuner (HDHomeRun) to Plex, Emby, Jellyfin, Channels and Kodi: `/discover.json`,
 * `/lineup.json`, `/lineup_status.json`, `/lineup.post` and `/auto/v<number>`. The channels are the enabled items of the playlist
 * that are not films.
 */
export function createTunerRoutes(
  dependencies: RouteDependencies & { readonly library: Library; readonly tunerId: string },
): Hono<RouteEnv> {
  const { library, tunerId, version } = dependencies;
  const playItem = createItemPlayer(dependencies);
  const streams = new AccountStreams(dependencies.engine);
  const app = new Hono<RouteEnv>();
  app.get("/discover.json", (c) =>
    c.json({
      FriendlyName: "Sluice",
      Manufacturer: "Sluice",
      ModelNumber: TUNER_MODEL,
      FirmwareName: "sluice",
      FirmwareVersion: version,
      DeviceID: tunerId,
      DeviceAuth: "",
      BaseURL: baseUrl(c),
      LineupURL: `${baseUrl(c)}/lineup.json`,
      TunerCount: TUNER_COUNT,
    }),
  );
  app.get("/lineup.json", async (c) => {
    const channels = await numberedChannels(library);
    return c.json(
      [...channels].map(([number, item]) => ({
        GuideNumber: number,
        GuideName: item.displayTitle || item.title,
        URL: `${baseUrl(c)}/auto/v${number}`,
        ...(item.isFavorite && { Favorite: 1 }),
      })),
    );
  });
  app.get("/lineup_status.json", (c) =>
    c.json({ ScanInProgress: 0, ScanPossible: 1, Source: "Cable", SourceList: ["Cable"] }),
  );
  // A client that asks for a scan reads the present list afterwards.
  app.post("/lineup.post", (c) => c.body(null, 200));
  app.get("/auto/:channel", async (c) => {
    const number = /^v(\d{1,15}(?:\.\d{1,6})?)$/.exec(c.req.param("channel"))?.[1] ?? "";
    const item = (await numberedChannels(library)).get(number);
    if (item === undefined)
      throw new SluiceError("unknown_item", `there is no channel ${number || "of this form"}`);
    if (streams.played(TUNERS) >= TUNER_COUNT) return c.body("all tuners are in use\n", 503, ALL_IN_USE);
    return streams.add(TUNERS, c.env.origin.remote.host, 0, await playItem(c, item.id));
  });
  return app;
}
