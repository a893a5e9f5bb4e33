import { z } from "zod";
import { SluiceError } from "../../src/base/errors.ts";
import { NO_OWNER } from "../../src/library/contract.ts";
import { byteStream } from "../http/responses.ts";
import { type ControlCall, type ControlMethod, controlMethod, PRIVATE } from "./method.ts";
import { clippedTitle, credential, name, owner, webUrl } from "./playlist-params.ts";

const params = z.object({
  name: name.describe("The name of the import task"),
  category: name.describe("The category of the imported items"),
  owner,
  url: webUrl.describe("Instead of a file: the URL of a playlist, which is added as an external playlist"),
  login: credential,
  password: credential,
});

/**
 * `playlist_import` (interface: Playlist methods).
 *
 * CHOICE(import-url): deployed import forms also send `url`, `login` and `password` instead of a file. The playlist is then
 * added as an external playlist that is fetched once and has no update interval.
 */
export const playlistImport: ControlMethod = controlMethod({
  name: "playlist_import",
  summary: "Imports an M3U playlist in the background; upload the file as a multipart/form-data POST",
  ...PRIVATE,
  params,
  files: { file: "An M3U playlist of at most 50 MB, optionally gzip-compressed" },
  result: z.object({ task_id: z.int() }),
  async run(params, call) {
    const { file } = call.files;
    if (file && params.url) throw new SluiceError("bad_parameter", "expected file or url, got both");
    if (params.url !== undefined) return { task_id: await importUrl({ ...params, url: params.url }, call) };
    if (!file) throw new SluiceError("missing_parameter", "file: expected a playlist (M3U)");
    const { bytes, filename } = file;
    const task = await call.library.importPlaylist(byteStream(bytes), {
      name: params.name ?? (clippedTitle(filename) || "playlist"),
      owner: params.owner ?? NO_OWNER,
      category: params.category ?? null,
    });
    return { task_id: task };
  },
});

async function importUrl(
  { url, name, category, login, password, owner }: z.output<typeof params> & { url: string },
  { library, allowPrivateUrls }: ControlCall,
): Promise<number> {
  const id = await library.externalPlaylists.add(
    {
      type: "content",
      name: name ?? new URL(url).hostname,
      category: category ?? "",
      url,
      updateInterval: 0,
      login: login ?? "",
      password: password ?? "",
    },
    { updateNow: false, allowPrivateUrls, ...(owner === undefined ? {} : { owner }) },
  );
  return library.externalPlaylists.refresh(id);
}
