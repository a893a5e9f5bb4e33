import type { Session, SessionInfo } from "../src/playback/contract.ts";
import type { ChannelState } from "../src/transfer/channel-contract.ts";
import { presentBuffering } from "./diagnosis.ts";
import { describeError } from "./http/errors.ts";

/** Builds the URLs of a session (interface: Playback session). */
export function sessionUrls(base: string, { infohash, key, output }: Session) {
  const path = `${infohash}/${key}`;
  return {
    playback: output === "hls" ? `${base}/ace/m/${path}.m3u8` : `${base}/ace/r/${path}`,
    stat: `${base}/ace/stat/${path}`,
    command: `${base}/ace/cmd/${path}`,
    event: `${base}/ace/event/${path}`,
  };
}

/** Converts a session to the response of `format=json` (interface: Playback session). */
export function presentSession(base: string, session: Session): Record<string, unknown> {
  const urls = sessionUrls(base, session);
  return {
    playback_url: urls.playback,
    stat_url: urls.stat,
    command_url: urls.command,
    event_url: session.wantsEvents ? urls.event : undefined,
    is_direct: session.isDirect ? true : undefined,
    ...identity(session),
  };
}

/** Converts the state of a session to the response of the stat URL (interface: Playback session info). Only live content has `livepos`. */
export function presentInfo(
  session: Session,
  info: SessionInfo,
  compat: "document" | "deployed",
): Record<string, unknown> {
  const { figures, cache } = info;
  return {
    status: statusOf(info, compat),
    // Deployed clients display this percentage while they wait.
    progress: info.progress,
    error_message: info.problem && (describeError(info.problem)?.text ?? info.problem.message),
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
    // Interface: -1 when none; a live stream has no files.
    selected_file_index: session.isLive ? -1 : info.fileIndex,
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
    channel: info.channel && channelOf(info.channel),
    // CHOICE(buffering): an extension: why the player waits, as a sentence with its numbers; null if it does not wait.
    buffering: presentBuffering(info.buffering),
    // An extension: the swarm size that trackers report; -1 if unknown.
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

/** CHOICE(channel-stat): an extension, for a channel of several sources: `source` counts from 1; 0 means the test pattern or no data yet. */
function channelOf({ source, sourceCount, showsPattern, switches, lastSwitch }: ChannelState) {
  return {
    source: source ? source.index + 1 : 0,
    source_name: source?.name ?? null,
    sources: sourceCount,
    shows_pattern: showsPattern,
    switches,
    last_switch_at: lastSwitch?.at ?? null,
    last_switch_reason: lastSwitch?.reason ?? null,
  };
}

/** CHOICE(live-positions): positions are whole UNIX seconds, as text. */
function livePosition({ firstAt, lastAt, position, ...edge }: NonNullable<SessionInfo["live"]>) {
  const [first, last, pos] = [firstAt, lastAt, position].map((at) => String(Math.floor(at)));
  return {
    last,
    live_first: first,
    pos,
    first_ts: first,
    last_ts: last,
    is_live: edge.isAtEdge ? "1" : "0",
    live_last: last,
    buffer_pieces: String(edge.piecesAhead),
  };
}

/** As deployed clients expect, `bitrate` is in bytes per second and `bandwidth` in bits per second. */
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

/**
 * CHOICE(status-words): the interface specifies `prefuf` and `dl` only, so a failed start stays `prefuf` with an `error_message`.
 * Deployed clients expect `prebuf`, and `err` for a failure.
 */
function statusOf({ status }: SessionInfo, compat: "document" | "deployed"): string {
  if (status === "playing") return "dl";
  if (compat === "document") return "prefuf";
  return status === "failed" ? "err" : "prebuf";
}

function kilobytes(bytes: number): number {
  return Math.round(bytes / 1024);
}
