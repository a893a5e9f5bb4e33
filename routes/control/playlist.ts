import type { ControlMethod } from "./method.ts";
import { editMethods } from "./playlist-edit.ts";
import { flagMethods } from "./playlist-flags.ts";
import { playlistGet } from "./playlist-get.ts";
import { playlistImport } from "./playlist-import.ts";
import { playlistSearch } from "./playlist-search.ts";
import { clearMethod, trashMethods } from "./playlist-trash.ts";

/** The methods of this section of the interface. */
export const playlistMethods: readonly ControlMethod[] = [
  ...editMethods,
  ...trashMethods,
  playlistGet,
  clearMethod,
  ...flagMethods,
  playlistImport,
  playlistSearch,
];
