import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { ExternalPlaylist } from "../../src/library/contract.ts";
import { type ControlMethod, controlMethod, okResult, PRIVATE } from "./method.ts";
import { bool, integer, oneOf, required } from "./params.ts";
import { clearableName, credential, name, omitUndefined, owner, webUrl } from "./playlist-params.ts";

/** The library limits the interval (docs/choices.md: update-interval). */
const updateInterval = required(
  integer
    .refine((value) => value === undefined || value >= 0, "expected seconds, 0 (manual updates only) or more")
    .meta({ type: "integer", minimum: 0, "x-expected": "seconds, 0 (manual updates only) or more" }),
);

const id = required(integer).describe("The id of an external playlist");
/** The schema of an external playlist (interface: External playlist), which includes login and password. */
const externalPlaylistSchema = z.object({
  id: z.int(),
  type: z.enum(["content", "broadcast"]),
  category: z.string(),
  name: z.string(),
  url: z.string(),
  login: z.string(),
  password: z.string(),
  update_interval: z.int(),
  updated_at: z.int(),
  last_update: z.int(),
  next_update: z.int(),
  /** An extension: why the last refresh failed; absent if it succeeded. */
  problem: z.string().optional(),
});

/** Interface: External playlist methods. */
export const externalPlaylistMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "external_playlist_add",
    summary: "Adds a playlist of another server, which the engine refreshes on an interval",
    ...PRIVATE,
    params: z.object({
      type: required(oneOf(["content", "broadcast"])),
      category: required(clearableName),
      name: required(name),
      url: required(webUrl),
      update_interval: updateInterval,
      update_now: bool.describe("1 (default): refreshes the playlist immediately; 0: waits for the interval"),
      login: credential,
      password: credential,
      owner,
    }),
    result: z.int(),
    run({ update_interval, update_now, login, password, owner, ...playlist }, call) {
      const { allowPrivateUrls, library } = call;
      return library.externalPlaylists.add(
        { ...playlist, updateInterval: update_interval, login: login ?? "", password: password ?? "" },
        { updateNow: update_now ?? true, allowPrivateUrls, ...omitUndefined({ owner }) },
      );
    },
  }),
  controlMethod({
    name: "external_playlist_delete",
    summary: "Deletes an external playlist and its items, except locked items",
    ...PRIVATE,
    params: z.object({ id }),
    result: okResult,
    async run({ id }, { library }) {
      await library.externalPlaylists.delete(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "external_playlist_update",
    summary: "Refreshes an external playlist in the background",
    ...PRIVATE,
    params: z.object({ id }),
    result: okResult,
    async run({ id }, { library }) {
      await library.externalPlaylists.refresh(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "external_playlist_edit",
    summary: "Changes an external playlist; login and password are kept if absent",
    ...PRIVATE,
    params: z.object({
      id,
      category: required(clearableName),
      name: required(name),
      update_interval: updateInterval,
      login: credential,
      password: credential,
    }),
    result: okResult,
    async run({ id, update_interval, login, password, ...settings }, { library }) {
      const change = { ...settings, updateInterval: update_interval, ...omitUndefined({ login, password }) };
      await library.externalPlaylists.edit(id, change);
      return "ok";
    },
  }),
  controlMethod({
    name: "external_playlist_get",
    summary: "Lists all external playlists, or returns one",
    ...PRIVATE,
    params: z.object({ id: integer.describe("The id of an external playlist; default: all") }),
    result: z.object({ playlist: z.array(externalPlaylistSchema) }),
    async run({ id }, { library, apiVersion }) {
      if (id === undefined) return { playlist: (await library.externalPlaylists.list()).map(present) };
      const playlist = await library.externalPlaylists.get(id);
      if (!playlist) throw new SluiceError("unknown_external_playlist", String(id));
      const presented = present(playlist);
      // Older clients read the members of a single playlist from the result itself.
      return apiVersion === 1 ? { ...presented, playlist: [presented] } : { playlist: [presented] };
    },
  }),
  controlMethod({
    name: "update_all_external_playlists",
    summary: "Refreshes all external playlists in the background",
    ...PRIVATE,
    params: z.object({}),
    result: z.object({ task_id: z.int() }),
    async run(_params, { library }) {
      return { task_id: await library.externalPlaylists.refreshAll() };
    },
  }),
];

function present(playlist: ExternalPlaylist): z.output<typeof externalPlaylistSchema> {
  return {
    id: playlist.id,
    type: playlist.type,
    category: playlist.category,
    name: playlist.name,
    url: playlist.url,
    login: playlist.login,
    password: playlist.password,
    update_interval: playlist.updateInterval,
    updated_at: playlist.updatedAt,
    last_update: playlist.lastUpdate,
    next_update: playlist.nextUpdate,
    ...(playlist.problem === null ? {} : { problem: playlist.problem }),
  };
}
