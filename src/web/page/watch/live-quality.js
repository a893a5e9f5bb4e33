// @ts-check

/** The bandwidth is measured over this time. */
const WINDOW_MS = 10_000;
/** The delay before the next attempt with a quality that failed. It doubles with each failure. */
const FIRST_WAIT_MS = 10_000;
const LONGEST_WAIT_MS = 600_000;

/**
 * Returns a live stream to a better quality when the network is fast again. hls.js weights each measurement by the duration of the download: a
 * few seconds of slow loads outweigh minutes of parts that take milliseconds, and the stream stays at its lowest quality.
 *
 * @param {typeof import("hls.js").default} Hls
 * @param {import("hls.js").default} hls
 * @param {() => number} now in milliseconds
 */
export function raiseQuality(Hls, hls, now = () => performance.now()) {
  let [wait, notBefore] = [FIRST_WAIT_MS, 0];
  let [begin, bytes, milliseconds] = [now(), 0, 0];
  let bitrate = 0;
  const measureAnew = () => {
    [begin, bytes, milliseconds] = [now(), 0, 0];
  };
  hls.on(Hls.Events.LEVEL_SWITCHED, (_event, { level }) => {
    const next = hls.levels[level]?.bitrate ?? 0;
    if (hls.autoLevelEnabled && next < bitrate) {
      notBefore = now() + wait;
      wait = Math.min(2 * wait, LONGEST_WAIT_MS);
    }
    bitrate = next;
    measureAnew();
  });
  hls.on(Hls.Events.FRAG_LOADED, (_event, { frag, part }) => {
    if (frag.type !== "main" || !hls.latestLevelDetails?.live) return;
    const { loaded, loading } = (part ?? frag).stats;
    bytes += loaded;
    milliseconds += Math.max(loading.end - loading.first, 1);
    if (now() < begin + WINDOW_MS) return;
    const bandwidth = (8_000 * bytes) / milliseconds;
    const better = hls.levels.map((level) => level.bitrate).filter((each) => each > bitrate);
    const isFastEnough = hls.config.abrBandWidthUpFactor * bandwidth > Math.min(...better);
    measureAnew();
    if (!hls.autoLevelEnabled || now() < notBefore || !isFastEnough || bandwidth <= hls.bandwidthEstimate)
      return;
    hls.bandwidthEstimate = bandwidth;
  });
}
