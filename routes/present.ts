import type { Session, SessionInfo } from "../src/engine/engine.ts";
import { presentHoldUp } from "./diagnosis.ts";
import { explain } from "./errors.ts";

/** The URLs of a session (interface: Playback session), without a query. */
export function sessionUrls(base: string, { infohash, key, output }: Session) {
  const path = `${infohash}/${key}`;
  return {
    playback: output === "hls" ? `${base}/ace/m/${path}.m3u8` : `${base}/ace/r/${path}`,
    stat: `${base}/ace/stat/${path}`,
    command: `${base}/ace/cmd/${path}`,
    event: `${base}/ace/event/${path}`,
  };
}

/** The answer to `format=json` (interface: Playback session). */
export function presentSession(base: string, session: Session): Record<string, unknown> {
  const urls = sessionUrls(base, session);
  return {
    playback_url: urls.playback,
    stat_url: urls.stat,
    command_url: urls.command,
    event_url: session.wantsEvents ? urls.event : undefined,
    ...identity(session),
  };
}

/** The answer of the stat URL (interface: Playback session info). `livepos` is told of live content only. */
export function presentInfo(
  session: Session,
  info: SessionInfo,
  compat: "document" | "deployed",
): Record<string, unknown> {
  const { figures, cache } = info;
  return {
    status: statusWord(info, compat),
    // Deployed clients show this while they wait.
    progress: info.progress,
    error_message: info.problem && (explain(info.problem)?.text ?? info.problem.message),
    peers: figures.connectedPeers,
    speed_down: kilobytes(figures.bytesPerSecondDown),
    speed_up: kilobytes(figures.bytesPerSecondUp),
    downloaded: figures.downloaded,
    uploaded: figures.uploaded,
    network_monitor_status: 0,
    network_monitor_started: false,
    debug_level: 0,
    hls_streams: info.variants.length > 0 ? info.variants.map(hlsStream) : undefined,
    selected_stream_index: info.variantIndex,
    selected_file_index: info.fileIndex,
    total_progress: Math.floor(info.totalProgress),
    stream_status: -1,
    manifest_access_mode: -1,
    ...identity(session),
    livepos: info.live && livePosition(info.live),
    disk_cache_stats: {
      avail: cache.available,
      disk_cache_limit: cache.limit,
      inactive_inuse: cache.inactiveInUse,
      active_inuse: cache.activeInUse,
    },
    // CHOICE(buffering): ours: why the player waits, in a sentence, with its numbers; null where it does not.
    buffering: presentHoldUp(info.holdUp),
    // Ours, for the page: how large trackers say the swarm is; -1 where none says.
    swarm_seeds: figures.trackers.seeds ?? -1,
    swarm_leechers: figures.trackers.leechers ?? -1,
  };
}

function identity(session: Session) {
  return {
    infohash: session.infohash,
    playback_session_id: session.id,
    is_live: session.isLive ? 1 : 0,
    is_encrypted: 0,
    client_session_id: session.clientSessionId,
  };
}

/** CHOICE(live-positions): positions are whole seconds since 1970, as text. */
function livePosition({ firstAt, lastAt, position, ...standing }: NonNullable<SessionInfo["live"]>) {
  const [first, last, pos] = [firstAt, lastAt, position].map((at) => String(Math.floor(at)));
  return {
    last,
    live_first: first,
    pos,
    first_ts: first,
    last_ts: last,
    is_live: standing.isAtEdge ? "1" : "0",
    live_last: last,
    buffer_pieces: String(standing.piecesAhead),
  };
}

/** `bitrate` is bytes a second, `bandwidth` bits a second, as deployed clients read them. */
function hlsStream({ width, height, codecs, isAudio, ...rates }: SessionInfo["variants"][number]) {
  const { bitsPerSecond, averageBitsPerSecond = bitsPerSecond } = rates;
  const kilobits = Math.round(bitsPerSecond / 1000);
  return {
    name: isAudio || height === undefined ? `${kilobits} kbps` : `${height}p`,
    quality: height ?? 0,
    bitrate: Math.round(averageBitsPerSecond / 8),
    bandwidth: bitsPerSecond,
    codecs: codecs.join(","),
    resolution: width !== undefined && height !== undefined ? `${width}x${height}` : "",
    type: isAudio ? "audio" : "video",
  };
}

/** CHOICE(status-words): the interface writes `prefuf`; deployed clients know `prebuf`. A failure is `err` in both. */
function statusWord({ status }: SessionInfo, compat: "document" | "deployed"): string {
  if (status === "failed") return "err";
  if (status === "playing") return "dl";
  return compat === "deployed" ? "prebuf" : "prefuf";
}

function kilobytes(bytes: number): number {
  return Math.round(bytes / 1024);
}
