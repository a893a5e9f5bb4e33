import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Player, Players } from "../http/dependencies.ts";
import { contentParams, playbackUrl } from "./content-params.ts";
import { controlMethod, okResult, PUBLIC } from "./method.ts";
import { clipped, integer, text } from "./params.ts";

const playerResult = z.object({
  id: z.string(),
  type: z.enum(["proxy", "aircast"]),
  protocol: z.enum(["enginecast", "chromecast"]).nullable(),
  name: z.string(),
  icon: z.string().nullable(),
});

/** The id that deployed clients send for the default player. */
const DEFAULT_PLAYER = "-1";

/** Local players (interface: Service methods). Pages of other sites cannot list them. */
export const playerMethods = [
  controlMethod({
    name: "get_available_players",
    summary: "Lists the players that open_in_player can start",
    ...PUBLIC,
    params: z.object({ ...contentParams, content_id: text.describe("Any text; ignored") }),
    result: z.object({ players: z.array(playerResult) }),
    run: async (_, { dependencies }) => ({ players: (await dependencies.players?.list()) ?? [] }),
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
    }),
    result: okResult,
    async run(params, call) {
      const url = await playbackUrl(params, call);
      const { players, player } = await playerNamed(
        params.player_id ?? DEFAULT_PLAYER,
        call.dependencies.players,
      );
      if (params.file_index !== undefined) url.searchParams.set("_idx", String(params.file_index));
      await players.open(player.id, url.href);
      return "ok";
    },
  }),
];

async function playerNamed(
  id: string,
  players: Players | undefined,
): Promise<{ readonly players: Players; readonly player: Player }> {
  const listed = (await players?.list()) ?? [];
  const player = id === DEFAULT_PLAYER ? listed[0] : listed.find((each) => each.id === id);
  if (players && player) return { players, player };
  const names = listed.map((each) => each.id).join(", ") || "none";
  throw new SluiceError("unknown_player", `${clipped(id)}; available players: ${names}`);
}
