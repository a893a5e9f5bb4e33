import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** One file of the page: its content type and its text. */
export interface WebAsset {
  readonly type: string;
  readonly text: string;
}

const SCRIPT = "text/javascript; charset=utf-8";
const OWN = [
  "api",
  "main",
  "picture-subtitles",
  "playback",
  "engine",
  "player",
  "figures",
  "guide",
  "health",
  "link",
  "live",
  "memory",
  "playlist",
  "playlist-add",
  "playlist-dialog",
  "playlist-dom",
  "playlist-list",
  "playlist-menu",
  "playlist-row",
  "playlist-share",
  "playlist-source",
  "playlist-subscriptions",
  "playlist-tabs",
  "playlist-tasks",
  "playlist-trash",
  "programme-row",
  "recordings",
  "remote-control",
  "screen-controls",
  "screens",
  "settings",
  "subtitle-delay",
  "subtitle-file",
  "tracks",
  "view",
];

/**
 * Reads every file of the page: its own modules, and the libraries that it uses from their packages. Bun runs this when it
 * builds the single binary and inlines the result; the other runtimes run it at start.
 *
 * @returns the files by URL path
 */
export function readWebAssets(): Record<string, WebAsset> {
  const own = (name: string) => readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8");
  const packages = createRequire(import.meta.url);
  const library = (name: string) => ({
    type: SCRIPT,
    // Source maps of libraries are not served.
    text: readFileSync(packages.resolve(name), "utf8").replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"),
  });
  const assets: Record<string, WebAsset> = {
    "/": { type: "text/html; charset=utf-8", text: own("index.html") },
    "/app/style.css": { type: "text/css; charset=utf-8", text: own("style.css") },
    "/app/playlist.css": { type: "text/css; charset=utf-8", text: own("playlist.css") },
    "/app/health.css": { type: "text/css; charset=utf-8", text: own("health.css") },
    "/app/settings.css": { type: "text/css; charset=utf-8", text: own("settings.css") },
    "/app/icon.svg": { type: "image/svg+xml", text: own("icon.svg") },
    "/app/hls.js": library("hls.js/dist/hls.min.mjs"),
    "/app/hls.worker.js": library("hls.js/dist/hls.worker.js"),
    "/app/idb-keyval.js": library("idb-keyval/dist/index.js"),
    "/app/peerjs.js": asModule(library("peerjs/dist/peerjs.min.js")),
  };
  for (const name of OWN) {
    assets[`/app/${name}.js`] = { type: SCRIPT, text: withLibraryPaths(own(`${name}.js`)) };
  }
  return assets;
}

/** Converts the PeerJS script, which defines `window.peerjs`, to a module; its own module imports further packages. */
function asModule({ type, text }: WebAsset): WebAsset {
  return { type, text: `${text}\nexport const { Peer } = window.peerjs;\n` };
}

/** Replaces package names in imports by the paths above, because browsers cannot resolve package names. */
function withLibraryPaths(script: string): string {
  return script
    .replaceAll('from "idb-keyval"', 'from "./idb-keyval.js"')
    .replaceAll('import("hls.js")', 'import("./hls.js")')
    .replaceAll('import("peerjs")', 'import("./peerjs.js")');
}
