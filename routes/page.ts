import { type Context, Hono, type MiddlewareHandler } from "hono";
import { SluiceError } from "../src/base/errors.ts";
import { type Infohash, parseInfohash } from "../src/base/ids.ts";
import { playOrder } from "../src/base/play-order.ts";
import { BROWSER_AUDIO } from "../src/playback/contract.ts";
import type { AudioRequest } from "../src/remux/contract.ts";
import type { TextSocket, TextSocketHandlers } from "../src/runtime/contract.ts";
import { isForeignPage, isSameOrigin, pathPrefix } from "./http/access.ts";
import type { RouteDependencies, RouteEnv } from "./http/dependencies.ts";
import { attachment } from "./http/responses.ts";
import { createRoomRoutes, type Rooms, type ViewerSettings } from "./swarm.ts";

/** What the page requests if the browser decodes only AAC and MP3. */
const PAGE_CONVERSION = { all: true, mp3: false, ac3: false, isHls: true, channels: 2 } as const;

/** One file of the page. `isHashed`: its path changes with its content. */
interface PageAsset {
  readonly type: string;
  readonly text: string;
  readonly isHashed: boolean;
}

/** A file as it is sent. */
interface SentAsset {
  readonly etag: string;
  /** Compressed with gzip. */
  readonly packed: Uint8Array<ArrayBuffer>;
}

/**
 * Lets the page run its own scripts, connect to this engine, and play the `blob:` URLs of hls.js. Forbids inline scripts,
 * other servers, and framing.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  // hls.js adds tracks for subtitles with an empty `data:` address.
  "media-src 'self' blob: data:",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
/** The path of the page for viewers among the assets. */
const VIEWER = "/watch";

/** The page for viewers does not wait longer for the trackers of its stream; it then connects to its engine only. */
const TRACKERS_TIMEOUT_MS = 1_000;

/** `trackers` are those of the page for viewers, undefined for other pages. Web sites may embed the page for viewers, which has no access to the library or the settings. A proxy that serves the page below a path, such as Home Assistant's ingress, may show it in a frame of its own origin. */
function securityPolicy(c: Context<RouteEnv>, trackers: readonly string[] | undefined): string {
  const frames = trackers !== undefined ? "*" : pathPrefix(c) === "" ? "'none'" : "'self'";
  const servers = ["connect-src 'self'", ...(trackers ?? []).map((url) => new URL(url).origin)].join(" ");
  return `${CONTENT_SECURITY_POLICY}; ${servers}; frame-ancestors ${frames}`;
}

/** Dependencies of the start page. */
interface PageDependencies extends Pick<RouteDependencies, "engine" | "access"> {
  /** Returns the files of the page by path. Called once, at the first request. */
  readonly assets: () => Promise<Readonly<Record<string, PageAsset>>>;
  /** Computes the entity tag of a text. */
  readonly digest: (text: string) => string;
  /** Introduces open pages to each other for “Send to a screen”. */
  readonly signaling: Signaling;
  /** Introduces the viewers of a live stream to each other. */
  readonly rooms: Rooms;
  readonly viewers: ViewerSettings;
  /** Makes a ZIP archive of the page for viewers, for another web server; resolves to undefined if the URL of the engine is not usable.
   * `trackersOf` returns the trackers that pages of the engine may use under this host name. */
  readonly viewerArchive: (
    assets: PageDependencies["assets"],
    engine: string,
    infohash: Infohash,
    trackersOf: (hostname: string) => Promise<readonly string[]>,
  ) => Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** The PeerJS signaling server of the engine. */
interface Signaling {
  /** Assigns a code to the device at `host`; returns undefined if too many are in use. */
  assignCode(host: string): string | undefined;
  /** Connects a page of the device at `host` under its code. */
  join(code: string, host: string, socket: TextSocket): TextSocketHandlers;
}

/** Creates the start page at `/`, the page for viewers of a stream at `/watch/<infohash>`, their files below `/app/`, the file list of
 * content, and the signaling between open pages. */
export function createPageRoutes(dependencies: PageDependencies): Hono<RouteEnv> {
  const { engine, assets, digest, signaling } = dependencies;
  const app = new Hono<RouteEnv>();
  /** The trackers that the page for viewers of a stream may connect to, if it knows this engine as `hostname`. */
  const trackersOf = async (
    c: Context<RouteEnv>,
    infohash: Infohash,
    hostname = new URL(c.req.url).hostname,
  ): Promise<readonly string[]> => {
    if (dependencies.viewers.viewerSharing === "off") return [];
    const isForeign = isForeignPage(c, dependencies);
    const signal = AbortSignal.timeout(TRACKERS_TIMEOUT_MS);
    return engine.webPeers.describe(infohash, hostname, { signal, isForeign }).then(
      ({ trackers }) => trackers,
      () => [], // The page shows why there is no stream.
    );
  };
  const files = loadedOnce(assets);
  addFiles(app, files, digest, trackersOf);
  // Links of deployed engines. The page fills its form and waits for the user, because any page may link here.
  app.get("/webui/player/:id", (c) => {
    const id = /^[0-9a-f]{40}/i.exec(c.req.param("id"))?.[0];
    return c.redirect(
      id === undefined ? `${pathPrefix(c)}/` : `${pathPrefix(c)}/#acestream://${id.toLowerCase()}`,
      302,
    );
  });
  app.get("/app/content/:infohash", async (c) => {
    // The page requests this after a start, so the transfer of this infohash is already open.
    const lease = await engine.acquire({ kind: "infohash", infohash: infohashOf(c.req.param("infohash")) });
    const { name, files } = lease.transfer;
    lease.release();
    const order = playOrder(files).map(({ index }) => index);
    return c.json({ name, files, order }, 200, {
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
  });
  app.get("/app/content/:infohash/:index/languages", async (c) => {
    const lease = await engine.acquire({ kind: "infohash", infohash: infohashOf(c.req.param("infohash")) });
    try {
      const { signal } = c.req.raw;
      const noStore = { "cache-control": "no-store" };
      if (lease.transfer.segmentSource) {
        const silent = await engine.silentSounds(lease.transfer, PAGE_CONVERSION, signal);
        return c.json({ languages: [], silent, opaque: [] }, 200, noStore);
      }
      const index = Number(c.req.param("index"));
      if (!lease.transfer.files.some((file) => file.index === index)) {
        throw new SluiceError("no_such_file", `there is no file ${c.req.param("index").slice(0, 20)}`);
      }
      const tracksOf = async (audio: AudioRequest) =>
        (await lease.transfer.media(index, audio, signal)).tracks;
      const [tracks, playable] = [await tracksOf({}), await tracksOf({ conversion: PAGE_CONVERSION })];
      const all = tracks.filter(({ kind }) => kind === "audio");
      const languages = [...new Set(all.map(({ language }) => language))];
      const heard = playable.filter(({ kind, codec }) => kind === "audio" && BROWSER_AUDIO.has(codec));
      const silent = all
        .filter((track) => !heard.some(({ language }) => language === track.language))
        .map(({ language, codec }) => ({ language, codec }));
      const opaque = tracks.flatMap(({ isOpaque, isPicture, language, codec }) =>
        isOpaque && !isPicture ? [{ language, codec }] : [],
      );
      return c.json({ languages, silent, opaque }, 200, noStore);
    } finally {
      lease.release();
    }
  });
  app.get("/app/viewer-page/:name", async (c) => {
    const infohash = parseInfohash(/^(.*)\.zip$/.exec(c.req.param("name"))?.[1] ?? "");
    const archive =
      infohash &&
      (await dependencies.viewerArchive(files, c.req.query("engine") ?? "", infohash, (hostname) =>
        trackersOf(c, infohash, hostname),
      ));
    if (archive === undefined)
      throw new SluiceError(
        "bad_parameter",
        "expected /app/viewer-page/<infohash>.zip?engine=URL, with the URL of the engine without password, query and fragment",
      );
    return c.body(archive, 200, { "content-type": "application/zip", ...attachment("viewer-page.zip") });
  });
  addSignaling(app, signaling);
  app.route("/", createRoomRoutes(dependencies, dependencies.viewers));
  return app;
}

/** Returns a function that loads at its first call, and again after a failure. */
function loadedOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () => {
    loaded ??= load().catch((error) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

/** Serves the files of the page, compressed if the browser accepts it. */
function addFiles(
  app: Hono<RouteEnv>,
  load: PageDependencies["assets"],
  digest: PageDependencies["digest"],
  trackersOf: (c: Context<RouteEnv>, infohash: Infohash) => Promise<readonly string[]>,
): void {
  // Each file is compressed at its first request; there are as many entries as files.
  const sent = new Map<PageAsset, Promise<SentAsset>>();
  const prepare = async ({ text }: PageAsset) => ({ etag: `"${digest(text)}"`, packed: await gzip(text) });
  const serve: MiddlewareHandler<RouteEnv> = async (c, next) => {
    const files = await load();
    const viewed = parseInfohash(/^\/watch\/([0-9a-f]{40})$/i.exec(c.req.path)?.[1] ?? "");
    const isViewer = viewed !== undefined;
    const path = isViewer ? VIEWER : c.req.path;
    const asset = Object.hasOwn(files, path) ? files[path] : undefined;
    if (asset === undefined) return next();
    if (!sent.has(asset)) sent.set(asset, prepare(asset));
    const { etag: assetTag, packed } = await sent.get(asset)!;
    const trackers = isViewer ? await trackersOf(c, viewed) : undefined;
    // The browser keeps the policy with the page.
    const etag = trackers?.length ? `"${digest(asset.text + trackers.join(" "))}"` : assetTag;
    const headers = {
      "content-type": asset.type,
      "content-security-policy": securityPolicy(c, trackers),
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": isViewer ? "cross-origin" : "same-origin",
      vary: "accept-encoding",
      // The service worker answers for the whole app, not only for its own folder.
      ...(c.req.path.endsWith("/service-worker.js") && { "service-worker-allowed": "../../" }),
      // Browsers revalidate at each visit, so that they load a new version of the program; the tag makes that cheap.
      "cache-control": asset.isHashed ? "public, max-age=31536000, immutable" : "no-cache",
      etag,
    };
    if (c.req.header("if-none-match") === etag) return c.body(null, 304, headers);
    return /\bgzip\b/.test(c.req.header("accept-encoding") ?? "")
      ? c.body(packed, 200, { ...headers, "content-encoding": "gzip" })
      : c.body(asset.text, 200, headers);
  };
  for (const path of ["/", "/app/*", `${VIEWER}/*`]) app.get(path, serve);
}

async function gzip(text: string): Promise<Uint8Array<ArrayBuffer>> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

function infohashOf(text: string): Infohash {
  const infohash = parseInfohash(text);
  if (infohash === undefined) throw new SluiceError("bad_selector", "expected 40 hexadecimal digits");
  return infohash;
}

/**
 * Serves the signaling protocol of PeerJS: `…/id` assigns a code, the WebSocket relays messages until two pages are
 * connected. Only same-origin pages may use it, because browsers let any page open a WebSocket to any host.
 */
function addSignaling(app: Hono<RouteEnv>, signaling: Signaling): void {
  app.get("/app/screens/peerjs/id", (c) => {
    if (!isSameOrigin(c)) return c.text("access denied\n", 403);
    const code = signaling.assignCode(c.env.origin.remote.host);
    return code === undefined
      ? c.text("too many screens are connected\n", 503, { "retry-after": "60" })
      : c.text(code, 200, { "cache-control": "no-store" });
  });
  app.get("/app/screens/peerjs", (c) => {
    if (!isSameOrigin(c)) return c.text("access denied\n", 403);
    const accept = c.env.acceptWebSocket;
    if (accept === undefined) return c.text("expected a WebSocket\n", 426, { upgrade: "websocket" });
    return accept((socket) => signaling.join(c.req.query("id") ?? "", c.env.origin.remote.host, socket));
  });
}
