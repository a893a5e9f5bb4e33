import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { Player, Players } from "../house.ts";
import { contentParams, playbackUrl } from "./content-params.ts";
import { controlMethod } from "./method.ts";
import { clipped, integer, required, text } from "./params.ts";
import { okResult } from "./results.ts";

const playerResult = z.object({
  id: z.string(),
  type: z.enum(["proxy", "aircast"]),
  protocol: z.enum(["enginecast", "chromecast"]).nullable(),
  name: z.string(),
  icon: z.string().nullable(),
});

/** The player that deployed clients call "the default one". */
const DEFAULT_PLAYER = "-1";

/** Programs and devices to watch with (interface: Service methods). Pages of other sites are told nothing of them. */
export const playerMethods = [
  controlMethod({
    name: "get_available_players",
    summary: "The players that open_in_player can start",
    isPublic: true,
    isRemote: true,
    isOpenToPages: false,
    params: z.object({ ...contentParams, content_id: text.describe("Any text; nothing depends on it") }),
    result: z.object({ players: z.array(playerResult) }),
    run: async (_, { house }) => ({ players: (await house.players?.list()) ?? [] }),
  }),
  controlMethod({
    name: "open_in_player",
    summary: "Plays content in a player that get_available_players lists",
    isPublic: true,
    isRemote: true,
    isOpenToPages: false,
    params: z.object({
      player_id: required(text).describe("From get_available_players; -1 for the first of them"),
      ...contentParams,
      playlist_item_id: integer.describe("An item of the playlist, in place of content"),
      file_index: integer.describe("Which file of the content; the largest that plays where it is absent"),
    }),
    result: okResult,
    async run(params, call) {
      const url = await playbackUrl(params, call);
      const { players, player } = await playerNamed(params.player_id, call.house.players);
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
  throw new SluiceError("unknown_player", `${clipped(id)}; there are: ${names}`);
}
