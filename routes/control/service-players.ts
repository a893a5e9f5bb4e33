import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { clientNetworkOf } from "../http/access.ts";
import type { Player, PlayerClient, PlayerCommand, PlayerStatus, Players } from "../http/dependencies.ts";
import { contentParams, playbackUrl, requireItem } from "./content-params.ts";
import { type ControlCall, controlMethod, okResult, PUBLIC } from "./method.ts";
import { clipped, decimal, integer, required, text } from "./params.ts";

const playerResult = z.object({
  id: z.string(),
  type: z.enum(["proxy", "aircast"]),
  protocol: z.enum(["enginecast", "chromecast"]).nullable(),
  name: z.string(),
  icon: z.string().nullable(),
});

const statusResult = z.object({
  status: z.enum(["playing", "paused", "buffering", "idle"]),
  volume: z.number().nullable().describe("0 to 1"),
  position: z.number().nullable().describe("Seconds"),
  duration: z.number().nullable().describe("Seconds; null for live streams"),
  title: z.string().nullable(),
});

/** The id that deployed clients send for the default player. */
const DEFAULT_PLAYER = "-1";

/** The longest film that a device can seek in. */
const MAX_SECONDS = 360_000;

const deviceId = required(text).describe("The id from get_available_players");

/** Players of this host and devices of its network (interface: Service methods). Pages of other sites cannot list them. */
export const playerMethods = [
  controlMethod({
    name: "get_available_players",
    summary: "Lists the players that open_in_player can start: programs of this host, devices of the network",
    ...PUBLIC,
    params: z.object({ ...contentParams, content_id: text.describe("Any text; ignored") }),
    result: z.object({ players: z.array(playerResult) }),
    run: async (_, call) => ({
      players: (await call.dependencies.players?.list(clientOf(call.context))) ?? [],
    }),
  }),
  controlMethod({
    name: "open_in_player",
    summary: "Plays content in a player from get_available_players",
    ...PUBLIC,
    params: z.object({
      player_id: text.describe("The id from get_available_players; default -1: the first player"),
      ...contentParams,
      playlist_item_id: integer.describe("The id of a playlist item, instead of content"),
      file_index: integer.describe(
        "The file index from get_media_files; default: the largest playable file, or the first part of a series",
      ),
      title: text.describe("The title that a device shows; default: that of the playlist item"),
    }),
    result: okResult,
    async run(params, call) {
      const url = await playbackUrl(params, call);
      const { players, player } = await playerNamed(params.player_id ?? DEFAULT_PLAYER, call);
      if (params.file_index !== undefined) url.searchParams.set("_idx", String(params.file_index));
      const { playlist_item_id: id } = params;
      const item = id === undefined ? undefined : await requireItem(id, call);
      const title = params.title || item?.displayTitle || item?.title || undefined;
      await players.open(player.id, { url: url.href, title }, clientOf(call.context));
      return "ok";
    },
  }),
];

/** Control of a device that plays, under the names that deployed clients use. */
export const castingMethods = [
  commandMethod("aircast_play", "Continues a paused device", () => ({ kind: "play" })),
  commandMethod("aircast_pause", "Pauses a device", () => ({ kind: "pause" })),
  commandMethod("aircast_stop", "Stops a device and ends its session", () => ({ kind: "stop" })),
  controlMethod({
    name: "aircast_seek",
    summary: "Seeks to a time in the film that a device plays",
    isExtra: true,
    ...PUBLIC,
    params: z.object({ device_id: deviceId, value: required(decimal(0, MAX_SECONDS)).describe("Seconds") }),
    result: okResult,
    run: ({ device_id, value }, call) => command(device_id, { kind: "seek", seconds: value }, call),
  }),
  controlMethod({
    name: "aircast_set_volume",
    summary: "Sets the volume of a device",
    isExtra: true,
    ...PUBLIC,
    params: z.object({ device_id: deviceId, value: required(decimal(0, 1)).describe("0 to 1") }),
    result: okResult,
    run: ({ device_id, value }, call) => command(device_id, { kind: "volume", volume: value }, call),
  }),
  controlMethod({
    name: "aircast_get_status",
    summary: "Reads what a device does: its state, position and volume",
    isExtra: true,
    ...PUBLIC,
    params: z.object({ device_id: deviceId }),
    result: statusResult,
    run: async ({ device_id }, call) => presentPlayerStatus(await playersOf(call).status(device_id)),
  }),
];

/** Converts what a device does to JSON. */
export function presentPlayerStatus(status: PlayerStatus): z.output<typeof statusResult> {
  return {
    status: status.state,
    volume: status.volume ?? null,
    position: status.positionSeconds ?? null,
    duration: status.durationSeconds ?? null,
    title: status.title ?? null,
  };
}

/** Declares a method that sends a command without a value. */
function commandMethod(name: string, summary: string, commandOf: () => PlayerCommand) {
  return controlMethod({
    name,
    summary,
    isExtra: true,
    ...PUBLIC,
    params: z.object({ device_id: deviceId }),
    result: okResult,
    run: ({ device_id }, call) => command(device_id, commandOf(), call),
  });
}

async function command(id: string, wanted: PlayerCommand, call: ControlCall): Promise<"ok"> {
  await playersOf(call).control(id, wanted);
  return "ok";
}

function playersOf({ dependencies }: ControlCall): Players {
  if (dependencies.players) return dependencies.players;
  throw new SluiceError("unknown_player", "this engine has no players");
}

/** Returns who asks for players. */
export function clientOf({ env: { origin } }: ControlCall["context"]): PlayerClient {
  return { origin, isLocal: clientNetworkOf(origin) === "local" };
}

async function playerNamed(
  id: string,
  call: ControlCall,
): Promise<{ readonly players: Players; readonly player: Player }> {
  const { players } = call.dependencies;
  const listed = (await players?.list(clientOf(call.context))) ?? [];
  const player = id === DEFAULT_PLAYER ? listed[0] : listed.find((each) => each.id === id);
  if (players && player) return { players, player };
  const names = listed.map((each) => each.id).join(", ") || "none";
  throw new SluiceError("unknown_player", `${clipped(id)}; available players: ${names}`);
}
