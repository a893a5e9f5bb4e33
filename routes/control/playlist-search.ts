import { search, searchParams, searchSchema } from "../search.ts";
import { type ControlMethod, controlMethod } from "./method.ts";
import { PRIVATE } from "./playlist-params.ts";

/** `search`: what `/search` answers, for who calls methods. */
export const playlistSearch: ControlMethod = controlMethod({
  name: "search",
  summary: "Searches the playlist and the transport files that are kept",
  ...PRIVATE,
  isExtra: true,
  params: searchParams,
  result: searchSchema,
  run: (params, { house, library, base }) => search(params, { library, engine: house.engine }, base),
});
