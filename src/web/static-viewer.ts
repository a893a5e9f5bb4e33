import { assert } from "../base/assert.ts";
import { parseHttpUrl } from "../base/http-url.ts";
import type { WebAssets } from "./assets.ts";
import { zipOf } from "./zip.ts";

/** Returns the address of an engine as a page of another server uses it; undefined if it is not an http or https URL, or has more than a path. */
export function viewerEngine(text: string): URL | undefined {
  if (parseHttpUrl(text) === undefined) return undefined;
  const engine = new URL(text);
  if (engine.username !== "" || engine.password !== "" || engine.search !== "" || engine.hash !== "")
    return undefined;
  if (!engine.pathname.endsWith("/")) engine.pathname += "/";
  return engine;
}

/** Which stream the page plays, and from where. */
export interface StaticViewer {
  /** The engine that the page connects to: an `http:` or `https:` URL that ends with a slash. */
  readonly engine: URL;
  /** 40 hexadecimal digits. */
  readonly infohash: string;
  /** The WebSocket trackers that the page may use, if the broadcast names them. */
  readonly trackers?: readonly URL[];
}

/** Scripts that the page loads at run time by their path. */
const LOADED_LATER = ["/app/viewer/worker.js", "/app/viewer/film-worker.js", "/app/hls.worker.js"];
const REFERENCE = /(?:"|')[\w./-]*?(chunk-[\w-]+\.js)(?:"|')/g;

/**
 * Returns the page for viewers as files for any web server, by their path.
 *
 * @param assets the files of the engine's page
 * @param viewer the stream and its engine
 */
export async function staticViewer(
  assets: WebAssets,
  { engine, infohash, trackers = [] }: StaticViewer,
): Promise<Map<string, string>> {
  const all = await assets();
  const textOf = (path: string): string => {
    const asset = Object.hasOwn(all, path) ? all[path] : undefined;
    assert(asset !== undefined, `the program lacks ${path}`);
    return asset.text;
  };
  const html = textOf("/watch");
  const files = new Map<string, string>();
  const add = (path: string): void => {
    const name = path.slice(1);
    if (files.has(name)) return;
    const text = textOf(path);
    files.set(name, text);
    if (path.endsWith(".js")) for (const [, chunk] of text.matchAll(REFERENCE)) add(`/app/${chunk}`);
  };
  for (const [, path] of html.matchAll(/(?:href|src)="\.\.(\/app\/[^"]+)"/g)) add(path!);
  for (const path of LOADED_LATER) add(path);
  const head = [
    `<meta http-equiv="content-security-policy" content="${policy(engine, trackers)}" />`,
    `<meta name="referrer" content="no-referrer" />`,
    `<meta name="sluice-engine" content="${escaped(engine.href)}" />`,
    `<meta name="sluice-infohash" content="${infohash}" />`,
    `<meta name="sluice-trackers" content="${escaped(trackers.map(({ origin }) => origin).join(" "))}" />`,
  ];
  const placed = html.replaceAll('"../app/', '"app/');
  files.set(
    "index.html",
    placed.replace(/(<meta charset[^>]*>)/, (charset) => [charset, ...head].join("\n    ")),
  );
  return files;
}

/**
 * Returns the page for viewers as a ZIP archive; undefined if `engine` is not a URL for {@link viewerEngine}.
 *
 * @param trackersOf returns the WebSocket trackers that the page may use, if it knows the engine by this host name
 */
export async function viewerArchive(
  assets: WebAssets,
  engine: string,
  infohash: string,
  trackersOf: (hostname: string) => Promise<readonly string[]>,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const url = viewerEngine(engine);
  if (url === undefined) return undefined;
  const trackers = (await trackersOf(url.hostname)).map((tracker) => new URL(tracker));
  return zipOf(await staticViewer(assets, { engine: url, infohash, trackers }));
}

/** The page may connect to its engine and to these trackers only. */
function policy(engine: URL, trackers: readonly URL[]): string {
  const socket = engine.origin.replace(/^http/, "ws");
  return escaped(
    [
      "default-src 'none'",
      ...["script-src", "style-src", "img-src", "worker-src"].map((name) => `${name} 'self'`),
      "media-src 'self' blob: data:",
      ["connect-src 'self'", engine.origin, socket, ...trackers.map(({ origin }) => origin)].join(" "),
      "base-uri 'none'",
      "form-action 'none'",
    ].join("; "),
  );
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
