import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** One file of the page: its content type and its text. */
export interface WebAsset {
  readonly type: string;
  readonly text: string;
}

const SCRIPT = "text/javascript; charset=utf-8";
/** The content types of the page's own files. */
const TYPES: Readonly<Record<string, string>> = {
  js: SCRIPT,
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};
/** Where the page is below this folder. */
const PAGE = new URL("./page/", import.meta.url);

/**
 * Reads every file of the page: its own modules, and the libraries that it uses from their packages. Bun runs this when it
 * builds the single binary and inlines the result; the other runtimes run it at start.
 *
 * @returns the files by URL path
 */
export function readWebAssets(): Record<string, WebAsset> {
  const own = (path: string) => readFileSync(new URL(path, PAGE), "utf8");
  const packages = createRequire(import.meta.url);
  const library = (name: string, path = packages.resolve(name)) => ({
    type: SCRIPT,
    // Source maps of libraries are not served.
    text: readFileSync(path, "utf8").replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"),
  });
  const assets: Record<string, WebAsset> = {
    "/": { type: "text/html; charset=utf-8", text: own("shell/index.html") },
    "/app/hls.js": library("hls.js/dist/hls.min.mjs"),
    "/app/hls.worker.js": library("hls.js/dist/hls.worker.js"),
    "/app/idb-keyval.js": library("idb-keyval/dist/index.js"),
    "/app/uqr.js": library("uqr", packages.resolve("uqr").replace(/\.cjs$/, ".mjs")),
    "/app/peerjs.js": asModule(library("peerjs/dist/peerjs.min.js")),
  };
  for (const path of readdirSync(PAGE, { encoding: "utf8", recursive: true })) {
    const name = path.replaceAll("\\", "/");
    const type = TYPES[name.split(".").pop()!];
    if (type !== undefined) assets[`/app/${name}`] = { type, text: withLibraryPaths(own(name)) };
  }
  return assets;
}

/** Converts the PeerJS script, which defines `window.peerjs`, to a module; its own module imports further packages. */
function asModule({ type, text }: WebAsset): WebAsset {
  return { type, text: `${text}\nexport const { Peer } = window.peerjs;\n` };
}

/** Replaces package names in imports by the paths above: browsers cannot resolve package names. Modules are one folder deep. */
function withLibraryPaths(script: string): string {
  return script.replace(
    /(from |import\()"(idb-keyval|hls|peerjs|uqr)(?:\.js)?"/g,
    (_, before: string, name: string) => `${before}"../${name}.js"`,
  );
}
