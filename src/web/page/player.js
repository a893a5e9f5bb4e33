// @ts-check
import { ownPath } from "./engine.js";

/** A manifest may take as long as the swarm needs to answer; a segment as long as a slow swarm needs to bring it. */
const MANIFEST_TIMEOUT_MS = 180_000;
const SEGMENT_TIMEOUT_MS = 60_000;
/** A live stream that broke off is tried again so long after; its session says when it is over. */
const AGAIN_MS = 2_000;
/** The oldest of a live manifest leaves it before it is loaded. */
const PASSING_SECONDS = 6;
/** What plays for so long after a reset of the decoder had stumbled over something that has gone by. */
const RECOVERED_MS = 60_000;

/**
 * What became of playing: `unplayable` where this browser cannot decode it (another container may help). `behindLive` is how
 * many seconds behind the live edge of its manifest the player is, where it plays something live; `seekBehind` goes to so many
 * seconds behind that edge and plays, and is false where the manifest does not go back so far; `reload` reads the manifest
 * anew, where the session was taken elsewhere, and plays.
 *
 * @typedef {{ onFailure: (kind: "unplayable" | "network", message: string) => void }} PlayerHandlers
 * @typedef {{ destroy: () => void, behindLive: () => number | undefined,
 *   seekBehind: (seconds: number) => boolean, reload: () => void }} Player
 */

/**
 * Plays an HLS URL in `video`: from `atSeconds` on: with hls.js where the browser has Media Source Extensions, else by
 * itself (Safari on phones).
 *
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {number} atSeconds
 * @param {PlayerHandlers} handlers
 * @returns {Promise<Player>}
 */
export async function attachPlayer(video, url, atSeconds, handlers) {
  const { default: Hls } = await import("hls.js");
  return Hls.isSupported()
    ? attachHls(Hls, video, url, atSeconds, handlers)
    : attachNative(video, url, atSeconds, handlers);
}

/**
 * @param {typeof import("hls.js").default} Hls
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {number} atSeconds
 * @param {PlayerHandlers} handlers
 * @returns {Player}
 */
function attachHls(Hls, video, url, atSeconds, handlers) {
  /** @param {number} timeoutMs */
  const patient = (timeoutMs) => ({
    default: {
      maxTimeToFirstByteMs: timeoutMs,
      maxLoadTimeMs: timeoutMs,
      timeoutRetry: { maxNumRetry: 2, retryDelayMs: 500, maxRetryDelayMs: 2000 },
      errorRetry: { maxNumRetry: 3, retryDelayMs: 1000, maxRetryDelayMs: 4000 },
    },
  });
  const hls = new Hls({
    workerPath: "/app/hls.worker.js",
    maxBufferLength: 30,
    backBufferLength: 60,
    // Broadcasts start where they are now; hls.js knows them by their manifest.
    startPosition: atSeconds > 0 ? atSeconds : -1,
    // Who has fallen a little behind catches up by playing faster than one can hear.
    lowLatencyMode: true,
    maxLiveSyncPlaybackRate: 1.04,
    manifestLoadPolicy: patient(MANIFEST_TIMEOUT_MS),
    playlistLoadPolicy: patient(MANIFEST_TIMEOUT_MS),
    fragLoadPolicy: patient(SEGMENT_TIMEOUT_MS),
  });
  let recoveredAt = Number.NEGATIVE_INFINITY;
  let isLive = false;
  let again = 0;
  let loads = 0;
  const load = () => {
    clearTimeout(again);
    const own = ownPath(url);
    // Another address is another stream to hls.js: nothing of the one before goes on.
    hls.loadSource(loads++ === 0 ? own : `${own}${own.includes("?") ? "&" : "?"}again=${loads}`);
  };
  hls.on(Hls.Events.LEVEL_LOADED, (_event, { details }) => {
    isLive = details.live;
  });
  hls.on(Hls.Events.ERROR, (_event, data) => {
    if (!data.fatal) return;
    if (data.type === Hls.ErrorTypes.NETWORK_ERROR && isLive) {
      again = window.setTimeout(load, AGAIN_MS);
      return;
    }
    if (data.type === Hls.ErrorTypes.NETWORK_ERROR) {
      handlers.onFailure("network", `The stream broke off (${data.response?.code ?? "no answer"})`);
      return;
    }
    // A decoder that stumbles once over a frame goes on after a reset; one that stumbles again at once never will.
    const isCodec = /codec|incompatible/i.test(data.details);
    const hasGoneOn = performance.now() - recoveredAt > RECOVERED_MS;
    if (!isCodec && data.type === Hls.ErrorTypes.MEDIA_ERROR && hasGoneOn) {
      recoveredAt = performance.now();
      hls.recoverMediaError();
      return;
    }
    handlers.onFailure("unplayable", data.error?.message ?? data.details);
  });
  load();
  hls.attachMedia(video);
  hls.on(Hls.Events.MANIFEST_PARSED, () => startPlaying(video));
  return {
    destroy() {
      clearTimeout(again);
      hls.destroy();
    },
    behindLive() {
      const { liveSyncPosition } = hls;
      return isLive && liveSyncPosition !== null ? liveSyncPosition - video.currentTime : undefined;
    },
    seekBehind(seconds) {
      const { liveSyncPosition: edge, latestLevelDetails: list } = hls;
      return isLive && edge !== null && list !== null && seekTo(video, edge - seconds, list.fragmentStart);
    },
    reload: load,
  };
}

/**
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {number} atSeconds
 * @param {PlayerHandlers} handlers
 * @returns {Player}
 */
function attachNative(video, url, atSeconds, handlers) {
  if (video.canPlayType("application/vnd.apple.mpegurl") === "") {
    handlers.onFailure(
      "network",
      "This browser can neither play HLS nor be helped to (no Media Source Extensions)",
    );
    return { destroy() {}, behindLive: () => undefined, seekBehind: () => false, reload() {} };
  }
  const onError = () => {
    const kind = video.error?.code === MediaError.MEDIA_ERR_NETWORK ? "network" : "unplayable";
    handlers.onFailure(kind, video.error?.message ?? "unknown");
  };
  video.addEventListener("error", onError);
  const seek = () => {
    if (atSeconds > 0) video.currentTime = atSeconds;
  };
  video.addEventListener("loadedmetadata", seek, { once: true });
  video.src = ownPath(url);
  startPlaying(video);
  const edge = () => {
    const { seekable, duration } = video;
    return duration === Number.POSITIVE_INFINITY && seekable.length > 0
      ? seekable.end(seekable.length - 1)
      : undefined;
  };
  return {
    behindLive() {
      const at = edge();
      return at === undefined ? undefined : at - video.currentTime;
    },
    seekBehind(seconds) {
      const at = edge();
      return at !== undefined && seekTo(video, at - seconds, video.seekable.start(0));
    },
    reload() {
      video.src = ownPath(url);
      startPlaying(video);
    },
    destroy() {
      video.removeEventListener("error", onError);
      video.removeEventListener("loadedmetadata", seek);
      video.removeAttribute("src");
      video.load();
    },
  };
}

/**
 * @param {HTMLVideoElement} video
 * @param {number} at
 * @param {number} first what is before it has gone by; it goes on going
 */
function seekTo(video, at, first) {
  if (at < first + PASSING_SECONDS) return false;
  video.currentTime = at;
  startPlaying(video);
  return true;
}

/** @param {HTMLVideoElement} video */
function startPlaying(video) {
  // Browsers may insist on a click; the controls are there for it.
  video.play().catch(() => {});
}
