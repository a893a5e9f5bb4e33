import type Hls from "hls.js";
import type { ListedSegment } from "../../../transfer/piece-segments.ts";
import { loadLanguage } from "../parts/language.js";
import { LIVE_OPTIONS, limitBackBuffer, MANIFEST_TIMEOUT_RETRY } from "../parts/live-hls.js";
import { t, translateDocument } from "../parts/text.js";
import { CandidateFilter, filterConnections } from "./candidate-filter.ts";
import { WorkerLoads, workerLoader } from "./loader.ts";
import type { FromWorker, ToWorker, ViewerFigures } from "./messages.ts";
import { Sharing } from "./sharing.ts";

/** What the engine says about the pages of a stream. */
interface SwarmSettings {
  /** The file to play, and the target duration of its segments; undefined for a live stream. */
  readonly fileIndex?: number;
  readonly segmentSeconds: number;
  readonly segments: readonly ListedSegment[];
  readonly title: string;
  readonly sharing: "ask" | "on" | "off";
  readonly iceServers: readonly string[];
  readonly trackers: readonly string[];
}

/** hls.js tries again after a loss of the stream, without end: a broadcast can pause. */
const RETRY_MS = 2_000;
/** After this time without media, the page plays the ordinary HLS of the engine. */
const FALLBACK_MS = 12_000;
/** The same if the engine has ended the connection, and no other page is connected: it admits few peers of one public network. */
const REFUSED_MS = 4_000;
const FALLBACK_CHECK_MS = 500;
/** How far the picture is behind the newest part, so that pieces from other pages can be late by a second. */
const SYNC_SECONDS = 1.6;
/** A page without a picture connects to other pages after this time. */
const SHARE_MS = 800;

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const video = element<HTMLVideoElement>("video");
const status = element("status");
/** A page that `sluice viewer-page` wrote names its stream and engine; that of an engine has them in its address. */
const named = (name: string) =>
  document.querySelector<HTMLMetaElement>(`meta[name="sluice-${name}"]`)?.content;
const engineUrl = named("engine") ?? new URL("../", location.href).href;
/** The policy of a page on another web site names the trackers that it may use; undefined: all. */
const allowedTrackers = named("trackers")?.split(" ");
const infohash = named("infohash") ?? location.pathname.split("/").pop() ?? "";
const swarmUrl = new URL(`swarm/${infohash}`, engineUrl).href;
/** The folder of this script and of those that it loads by their path. */
const appUrl = new URL(named("engine") === undefined ? "../app/" : "app/", location.href);

/** Figures for tests and for programs that embed the page. `behindMs`: how far the picture is behind the clock of the source. */
const facts: {
  figures?: ViewerFigures;
  startMs?: number;
  stalls: number;
  behindMs: number | undefined;
  isFallback: boolean;
} = { stalls: 0, behindMs: undefined, isFallback: false };
Object.assign(globalThis, { sluiceViewer: facts });

async function main(): Promise<void> {
  // Everything that playback needs is requested at once.
  const hlsLoaded = import("hls.js");
  const languageLoaded = loadLanguage();
  const recentLoaded = fetch(`${swarmUrl}/pieces/recent`, { cache: "no-store" })
    .then((response) => (response.ok ? response.arrayBuffer() : undefined))
    .catch(() => undefined);
  const isEmbedded = window.parent !== window || new URLSearchParams(location.search).has("embed");
  document.documentElement.classList.toggle("embedded", isEmbedded);
  const [transportFile, settings] = await Promise.all([
    read(swarmUrl).then((response) => response.arrayBuffer()),
    read(`${swarmUrl}/settings`).then((response) => response.json() as Promise<SwarmSettings>),
  ]);
  const { fileIndex, segmentSeconds } = settings;
  const isFilm = fileIndex !== undefined;
  const hlsUrl = new URL(isFilm ? `vod/${infohash}/${fileIndex}/` : `live/${infohash}/`, engineUrl).href;
  const worker = new Worker(new URL(`viewer/${isFilm ? "film-" : ""}worker.js`, appUrl));
  const post = (message: ToWorker, transfer: Transferable[] = []) => worker.postMessage(message, transfer);
  const loads = new WorkerLoads(post);
  const sharing = new Sharing({
    ...settings,
    ...{ infohash, url: swarmUrl, post, pages: () => facts.figures?.pages ?? 0 },
    trackers: settings.trackers.filter((url) => allowedTrackers?.includes(new URL(url).origin) ?? true),
  });
  let player: (() => Hls) | undefined;
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
    if (data.kind === "loaded" || data.kind === "failed") loads.answered(data);
    else if (data.kind === "figures") {
      showFigures(data.figures, isFilm);
      const shownAt = player?.().playingDate;
      facts.behindMs = shownAt ? Date.now() - shownAt.getTime() : undefined;
    } else if (data.kind === "problem") status.textContent = data.reason;
    else sharing.command(data);
  };
  const film = isFilm ? { fileIndex, segmentSeconds, hlsUrl } : undefined;
  const { segments } = settings;
  post({ kind: "start", url: swarmUrl, infohash, file: transportFile, segments, film }, [transportFile]);
  if (!isFilm) void recentLoaded.then((bytes) => post({ kind: "recent", bytes }, bytes && [bytes]));
  filterConnections(new CandidateFilter());
  await languageLoaded;
  translateDocument(document.body);
  document.title = settings.title;
  element("title").textContent = settings.title;
  player = play((await hlsLoaded).default, loads, hlsUrl, isFilm);
  // To connect to other pages takes the processor that the first picture needs.
  const timer = setTimeout(share, SHARE_MS);
  video.addEventListener("playing", share);
  function share() {
    clearTimeout(timer);
    video.removeEventListener("playing", share);
    sharing.start();
  }
}

async function read(url: string): Promise<Response> {
  const response = await fetch(url, { cache: "no-store" });
  if (response.ok) return response;
  throw new Error(
    response.status === 403 ? t("This engine does not admit this device.") : (await response.text()).trim(),
  );
}

/**
 * Plays what the worker brings; if it brings no live stream, the HLS stream of the engine. The worker of a film falls back itself, but if this
 * browser cannot decode the audio of the film, the engine converts it and sends the whole film. Returns what gives the present player; undefined if this browser cannot play.
 */
function play(
  Player: typeof Hls,
  loads: WorkerLoads,
  hlsUrl: string,
  isFilm: boolean,
): (() => Hls) | undefined {
  if (!Player.isSupported()) {
    status.textContent = t("This browser cannot play the stream.");
    return undefined;
  }
  const loadPolicy = {
    maxTimeToFirstByteMs: 25_000,
    maxLoadTimeMs: 25_000,
    timeoutRetry: null,
    errorRetry: null,
  };
  const policies = {
    manifestLoadPolicy: { default: loadPolicy },
    playlistLoadPolicy: { default: { ...loadPolicy, timeoutRetry: MANIFEST_TIMEOUT_RETRY } },
  };
  const workerPath = new URL("hls.worker.js", appUrl).href;
  const common = { ...LIVE_OPTIONS, workerPath, liveSyncDuration: SYNC_SECONDS };
  let hls = new Player({ ...common, ...policies, loader: workerLoader(loads) });
  // The path is virtual: the loader asks the worker.
  start(Player, hls, `${swarmUrl}/index.m3u8`);
  const playFromEngine = (url: string, startPosition?: number) => {
    facts.isFallback = true;
    hls.destroy();
    hls = new Player({ ...common, ...(startPosition !== undefined && { startPosition }) });
    start(Player, hls, url);
  };
  const began = performance.now();
  let newestMs = 0;
  let receivedAt = began;
  const check = setInterval(() => {
    const { isRefused = false, pages = 0, delayMs } = facts.figures ?? {};
    const patienceMs = isRefused && pages === 0 ? REFUSED_MS : FALLBACK_MS;
    const now = performance.now();
    const edgeMs = delayMs === undefined ? 0 : Date.now() - delayMs;
    // The figures are up to half a second old.
    if (edgeMs > newestMs + 2 * FALLBACK_CHECK_MS) {
      newestMs = edgeMs;
      receivedAt = now;
    }
    // The first seconds come from the engine, without the swarm.
    const isSteady = facts.startMs !== undefined && receivedAt - facts.startMs > FALLBACK_MS;
    if (isFilm || isSteady) clearInterval(check);
    if (isFilm || isSteady || now - receivedAt < patienceMs) return;
    clearInterval(check);
    playFromEngine(`${hlsUrl}index.m3u8`);
  }, FALLBACK_CHECK_MS);
  if (isFilm) {
    const playConverted = async () => {
      const url = `${hlsUrl}aac/index.m3u8`;
      // A film without sound has no audio there, either.
      if (!(await (await read(url)).text()).includes("TYPE=AUDIO")) return;
      playFromEngine(url, video.currentTime);
    };
    hls.once(Player.Events.BUFFER_CODECS, (_, { audio }) => {
      if (!audio) playConverted().catch(showProblem);
    });
  }
  video.addEventListener("playing", () => {
    facts.startMs ??= performance.now();
    status.textContent = "";
  });
  video.addEventListener("waiting", () => {
    if (facts.startMs !== undefined && !video.seeking) facts.stalls++;
    if (performance.now() - began > 1_000) status.textContent = t("Waiting for data …");
  });
  startWithSound();
  return () => hls;
}

function start(Player: typeof Hls, hls: Hls, url: string): void {
  limitBackBuffer(Player, hls, video);
  hls.attachMedia(video);
  hls.loadSource(url);
  hls.on(Player.Events.ERROR, (_, data) => {
    if (!data.fatal) return;
    if (data.type === Player.ErrorTypes.MEDIA_ERROR) {
      const { paused } = video;
      hls.recoverMediaError();
      // The reset pauses the video.
      if (!paused) void video.play().catch(() => {}); // The user can press play.
    } else setTimeout(() => hls.loadSource(`${url}?again=${Date.now()}`), RETRY_MS);
  });
}

/** Browsers play without sound until the user has used the page. */
function startWithSound(): void {
  const sound = element("sound");
  video.play().catch((error: unknown) => {
    if (!(error instanceof DOMException) || error.name !== "NotAllowedError") return;
    video.muted = true;
    sound.hidden = false;
    void video.play().catch(() => {}); // The user can press play.
  });
  sound.addEventListener("click", () => {
    video.muted = false;
    sound.hidden = true;
  });
  video.addEventListener("volumechange", () => {
    if (!video.muted) sound.hidden = true;
  });
}

function showFigures(figures: ViewerFigures, isFilm: boolean): void {
  facts.figures = figures;
  const { fromEngine, fromPages, pages } = figures;
  const total = fromEngine + fromPages;
  element("share").textContent =
    pages === 0
      ? isFilm
        ? ""
        : t("All data comes from the broadcaster")
      : t("{percent} % from other viewers ({count} connected)", {
          percent: total === 0 ? 0 : Math.round((100 * fromPages) / total),
          count: pages,
        });
  if (figures.hasEnded) status.textContent = t("The broadcast has ended.");
}

function showProblem(error: unknown): void {
  status.textContent = error instanceof Error ? error.message : String(error);
}

main().catch(showProblem);
