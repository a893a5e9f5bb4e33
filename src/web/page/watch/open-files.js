// @ts-check
import { listenForDrops } from "../parts/drops.js";
import { t } from "../parts/text.js";
import { isList } from "./playlist-add.js";
import { isSubtitleFile } from "./subtitle-file.js";
import { showProblem } from "./view.js";

/** The maximum size of a transport file. */
const MAX_TORRENT_BYTES = 10_000_000;

/**
 * Connects the ways to open a file, by choosing or dropping it: a transport file, a playlist, subtitles.
 *
 * @param {ReturnType<typeof import("./view.js").findElements>} page
 * @param {HTMLElement} root
 * @param {{ addList: (file: File) => Promise<unknown>, openSubtitles: (file: File) => Promise<unknown>,
 *   play: (torrent: Uint8Array) => void }} options
 */
export function connectFiles(page, root, { addList, openSubtitles, play }) {
  /** @param {File} file */
  async function take(file) {
    if (isSubtitleFile(file.name)) await openSubtitles(file);
    else if (await isList(file)) await addList(file);
    else if (file.size > MAX_TORRENT_BYTES)
      showProblem(
        page,
        t("{name} is too large for a torrent file (the limit is 10 MB).", { name: file.name }),
      );
    else play(new Uint8Array(await file.arrayBuffer()));
  }

  /**
   * @param {HTMLInputElement} input
   * @param {(file: File) => unknown} open
   */
  const connect = (input, open) =>
    input.addEventListener("change", () => {
      const file = input.files?.[0];
      if (file !== undefined) open(file);
      input.value = "";
    });

  page.chooseFile.addEventListener("click", () => page.torrentFile.click());
  connect(page.torrentFile, take);
  connect(page.subtitleFile, openSubtitles);
  listenForDrops(page.drop, root, take);
}
