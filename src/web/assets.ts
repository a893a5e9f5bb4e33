import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { Metafile } from "esbuild";
import { forOldBrowsers } from "./old-css.ts";

/** The built files, which only a program that Deno compiled contains: esbuild cannot run inside of it. */
export const BUILT_FILE = new URL("./built-page.json", import.meta.url);

/** One file of the page. */
interface WebAsset {
  /** Its content type. */
  readonly type: string;
  readonly text: string;
  /** Whether the path contains a hash of the content, so that browsers may keep the file for ever. */
  readonly isHashed: boolean;
}

/** Returns the files of the page by URL path. The first call may have to build them. */
export type WebAssets = () => Promise<Readonly<Record<string, WebAsset>>>;

/**
 * The oldest browser that works: a TV box or a TV of 2018. Newer syntax is rewritten; `old-browsers.js` adds missing functions.
 */
const TARGET = "chrome69";

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
};

/** The scripts that the two HTML files name, which load all others, and the service worker. */
const MAIN = ["shell/main.js", "viewer/viewer.ts", "shell/service-worker.js"];
/** The workers of the viewers' page: the live driver and the file transfer of the engine. Browsers that have WebRTC in a useful form are
 * newer. */
const WORKERS = ["viewer/worker", "viewer/film-worker"];
const WORKER_TARGET = ["chrome90", "firefox90", "safari15"];
/** The types of files that are served as they are. */
const PLAIN = /\.(?:svg|webmanifest)$/;

/**
 * Returns the files of the page: builds them, unless the program contains them.
 *
 * @returns the files by URL path
 */
export async function loadWebAssets(): ReturnType<WebAssets> {
  const built = await readFile(BUILT_FILE, "utf8").catch(() => undefined);
  return built === undefined ? buildWebAssets() : JSON.parse(built);
}

/**
 * Builds every file of the page: bundles and minifies its modules, together with the libraries that they use, for the oldest
 * browser that works. The single binary contains the result; from source the engine builds it at the first request, which
 * takes about 0.2 s of CPU time.
 *
 * @returns the files by URL path
 */
export async function buildWebAssets(): Promise<Record<string, WebAsset>> {
  const folder = fileURLToPath(new URL("./page/", import.meta.url));
  const names = (await readdir(folder, { recursive: true })).map((path) => path.replaceAll("\\", "/"));
  const entries = names.filter((name) => MAIN.includes(name) || name.endsWith(".css"));
  const worker = createRequire(import.meta.url).resolve("hls.js/dist/hls.worker.js");
  // A dynamic import, because the engine starts faster without esbuild.
  const { build, stop } = await import("esbuild");
  const { outputFiles, metafile } = await build({
    metafile: true,
    absWorkingDir: folder,
    entryPoints: [
      ...entries.map((name) => ({ in: `./${name}`, out: name.replace(/\.\w+$/, "") })),
      { in: worker, out: "hls.worker" },
    ],
    bundle: true,
    splitting: true,
    format: "esm",
    minify: true,
    legalComments: "none",
    target: TARGET,
    outdir: "app",
    chunkNames: "chunk-[hash]",
    write: false,
    logLevel: "silent",
  });
  const { outputFiles: workerFiles } = await build({
    ...{
      absWorkingDir: folder,
      entryPoints: WORKERS.map((name) => ({ in: `./${name}.ts`, out: name })),
      outdir: "app",
    },
    ...{
      bundle: true,
      format: "iife",
      minify: true,
      legalComments: "none",
      target: WORKER_TARGET,
      write: false,
      logLevel: "silent",
    },
  });
  await stop();
  const assets: Record<string, WebAsset> = {};
  const add = (path: string, name: string, text: string) => {
    const type = TYPES[name.split(".").pop()!] ?? "application/octet-stream";
    const isHashed = name.includes("chunk-");
    assets[path] = { type, text: name.endsWith(".css") ? forOldBrowsers(text) : text, isHashed };
  };
  const own = (name: string) => readFile(folder + name, "utf8");
  add("/", "index.html", await own("shell/index.html"));
  for (const name of names.filter((each) => PLAIN.test(each))) add(`/app/${name}`, name, await own(name));
  const preloads = viewerScripts(metafile).map(
    (path) => `<link rel="modulepreload" href="../${path}" />\n    `,
  );
  const watch = await own("viewer/index.html");
  add("/watch", "index.html", watch.replace("<script", `${preloads.join("")}<script`));
  for (const { path, text } of [...outputFiles, ...workerFiles]) {
    const name = path.slice(folder.length).replaceAll("\\", "/");
    add(`/${name}`, name, text);
  }
  return assets;
}

/** Returns the paths of the modules that the viewers' page needs to start, which browsers would find one after the other. */
function viewerScripts({ outputs }: Metafile): readonly string[] {
  const isPlayer = (path: string) =>
    Object.keys(outputs[path]?.inputs ?? {}).some((input) => input.includes("/hls.js/"));
  const { imports = [] } = outputs["app/viewer/viewer.js"] ?? {};
  return imports.flatMap(({ path, kind }) => (kind === "import-statement" || isPlayer(path) ? [path] : []));
}
