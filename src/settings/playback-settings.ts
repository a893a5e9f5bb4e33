import { choice, duration, integer, size } from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of playback sessions, live streams and conversion. */
export function playbackSettings() {
  return {
    maxSessions: setting(
      "max-sessions",
      integer("COUNT", 1, 10_000),
      256,
      "Maximum number of playback sessions; each player also uses a connection of --max-http-connections",
    ),
    maxTransfers: setting(
      "max-transfers",
      integer("COUNT", 1, 1_000),
      24,
      "Maximum number of open contents; they share --max-connections and --memory-limit",
    ),
    sessionIdle: setting(
      "session-idle",
      duration(1000),
      60_000,
      "Time without player requests after which a session ends",
    ),
    transferIdle: setting(
      "transfer-idle",
      duration(0),
      300_000,
      "Time that content stays open (and is seeded) after its last session ends",
    ),
    peersTimeout: setting("peers-timeout", duration(1000), 60_000, "Maximum time to wait for the first peer"),
    metadataTimeout: setting(
      "metadata-timeout",
      duration(1000),
      60_000,
      "Maximum time to wait for the metadata after the first peer",
    ),
    startTimeout: setting(
      "start-timeout",
      duration(1000),
      60_000,
      "Maximum time to wait for the first data after the metadata",
    ),
    segmentSeconds: setting(
      "segment-seconds",
      integer("SECONDS", 1, 30),
      6,
      "Target duration of an HLS segment; segments start at keyframes",
    ),
    liveWindow: setting(
      "live-window",
      duration(10_000),
      1_800_000,
      "How far back viewers can seek in a live stream",
    ),
    liveLimit: setting(
      "live-limit",
      size(),
      4e9,
      "Maximum disk space for live streams; 0 keeps a shorter window in memory",
    ),
    liveLag: setting(
      "live-lag",
      choice("low", "normal", "safe"),
      "normal",
      "Time to wait for missing live data before skipping it: 2 s (low), 3 s (normal) or 8 s (safe)",
    ),
    lowLatency: setting(
      "low-latency",
      choice("off", "on"),
      "off",
      "Start MPEG-TS players of live streams at the live edge, instead of up to 7 s behind it",
    ),
    transcoder: setting(
      "transcoder",
      choice("builtin", "ffmpeg"),
      "builtin",
      "What converts audio to AAC: the codecs of the engine, or the program ffmpeg of this machine, which knows more codecs",
    ),
    compat: setting(
      "compat",
      choice("document", "deployed"),
      "document",
      "Status names: as documented (prefuf), or as existing players expect them (prebuf)",
    ),
  } as const;
}
