import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import type { ExternalPlaylist } from "../../src/library/contract.ts";
import { type ControlMethod, controlMethod } from "./method.ts";
import { bool, integer, oneOf, required } from "./params.ts";
import { clearableName, credential, name, owner, PRIVATE, said, webUrl } from "./playlist-params.ts";

/** The library keeps to bounds of its own (docs/choices.md: update-interval). */
const updateInterval = required(
  integer
    .refine((value) => value === undefined || value >= 0, "expected seconds, from 0 (never by itself) on")
    .meta({ type: "integer", minimum: 0, "x-expected": "seconds, from 0 (never by itself) on" }),
);

const id = required(integer).describe("The id of an external playlist");
const ok = z.literal("ok");

/** An external playlist as it is told (interface: External playlist). Login and password are in it by contract. */
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
  /** Ours: why the last refresh failed; only where it did. */
  problem: z.string().optional(),
});

/** The methods of this section of the interface. */
export const externalPlaylistMethods: readonly ControlMethod[] = [
  controlMethod({
    name: "external_playlist_add",
    summary: "Adds a playlist of another server, which is fetched again and again",
    ...PRIVATE,
    params: z.object({
      type: required(oneOf(["content", "broadcast"])),
      category: required(clearableName),
      name: required(name),
      url: required(webUrl),
      update_interval: updateInterval,
      update_now: bool.describe("0: not now; 1 unless given"),
      login: credential,
      password: credential,
      owner,
    }),
    result: z.int(),
    run({ update_interval, update_now, login, password, owner, ...playlist }, call) {
      const { allowPrivateUrls, library } = call;
      return library.externalPlaylists.add(
        { ...playlist, updateInterval: update_interval, login: login ?? "", password: password ?? "" },
        { updateNow: update_now ?? true, allowPrivateUrls, ...said({ owner }) },
      );
    },
  }),
  controlMethod({
    name: "external_playlist_delete",
    summary: "Deletes an external playlist and what came from it, but for locked items",
    ...PRIVATE,
    params: z.object({ id }),
    result: ok,
    async run({ id }, { library }) {
      await library.externalPlaylists.delete(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "external_playlist_update",
    summary: "Refreshes an external playlist now, in the background",
    ...PRIVATE,
    params: z.object({ id }),
    result: ok,
    async run({ id }, { library }) {
      await library.externalPlaylists.refresh(id);
      return "ok";
    },
  }),
  controlMethod({
    name: "external_playlist_edit",
    summary: "Changes an external playlist; login and password stay where they are not given",
    ...PRIVATE,
    params: z.object({
      id,
      category: required(clearableName),
      name: required(name),
      update_interval: updateInterval,
      login: credential,
      password: credential,
    }),
    result: ok,
    async run({ id, update_interval, login, password, ...settings }, { library }) {
      const change = { ...settings, updateInterval: update_interval, ...said({ login, password }) };
      await library.externalPlaylists.edit(id, change);
      return "ok";
    },
  }),
  controlMethod({
    name: "external_playlist_get",
    summary: "Lists the external playlists, or one of them",
    ...PRIVATE,
    params: z.object({ id: integer.describe("One of them; all where it is absent") }),
    result: z.object({ playlist: z.array(externalPlaylistSchema) }),
    async run({ id }, { library, apiVersion }) {
      if (id === undefined) return { playlist: (await library.externalPlaylists.list()).map(present) };
      const found = await library.externalPlaylists.get(id);
      if (!found) throw new SluiceError("unknown_external_playlist", String(id));
      const one = present(found);
      // Older clients read the members of the one they asked for directly.
      return apiVersion === 1 ? { ...one, playlist: [one] } : { playlist: [one] };
    },
  }),
  controlMethod({
    name: "update_all_external_playlists",
    summary: "Refreshes all external playlists now, in the background",
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
