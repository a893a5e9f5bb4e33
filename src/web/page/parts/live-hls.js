// @ts-check

/** Played media that stays in the buffer of a live stream, and the most above it. */
const KEPT_SECONDS = 60;
const SPARE_SECONDS = 10;

/** Options of hls.js for live streams in parts. It limits the buffer of films only, see {@link limitBackBuffer}. */
export const LIVE_OPTIONS = {
  lowLatencyMode: true,
  // A player that is a little behind catches up with an inaudible increase in speed.
  maxLiveSyncPlaybackRate: 1.04,
  backBufferLength: KEPT_SECONDS,
  liveBackBufferLength: Number.POSITIVE_INFINITY,
};

/**
 * Retries of a manifest that does not come in time. If a part is late, so is the manifest that announces it. hls.js waits 1.6 s for such a
 * manifest (segments of 2 s), whatever the load policy says.
 */
export const MANIFEST_TIMEOUT_RETRY = { maxNumRetry: 5, retryDelayMs: 0, maxRetryDelayMs: 0 };

/**
 * Removes played media of a live stream from the buffer. hls.js 1.7 does so at the ends of segments, and forgets the segment whose last part it is
 * appending at that time. It then requests nothing until the playlist has two more segments, and playback stalls. The first part of a
 * segment is a safe time, because a further part follows.
 *
 * @param {typeof import("hls.js").default} Hls
 * @param {import("hls.js").default} hls
 * @param {HTMLVideoElement} video
 */
export function limitBackBuffer(Hls, hls, video) {
  hls.on(Hls.Events.FRAG_BUFFERED, (_event, { part }) => {
    const endOffset = video.currentTime - KEPT_SECONDS;
    const isSafe = hls.latestLevelDetails?.live && (part?.index ?? 0) === 0;
    if (!isSafe || video.buffered.length === 0 || video.buffered.start(0) > endOffset - SPARE_SECONDS) return;
    hls.trigger(Hls.Events.BUFFER_FLUSHING, { startOffset: 0, endOffset, type: null });
  });
}
