import type { Transfer } from "../../transfer/contract.ts";
import type { Buffering, BufferingReason, LiveFacts, PlaybackFacts } from "./contract.ts";
import { peerSearchSummary } from "./peer-search.ts";

/** A live source that has sent nothing for this time is the reason for a wait; pieces arrive several times a second. */
export const SOURCE_SILENT_MS = 4_000;
/** A stream with less than this share of the download limit shares it with other streams, and the sentence says so. */
const WHOLE_LIMIT_SHARE = 0.75;
/** A limit is not the reason if the data rate is this multiple of the bitrate. */
const AMPLE_SHARE = 2;
/** Peers are fast enough if they send this multiple of the bitrate: the margin covers fluctuations. */
const ENOUGH_SHARE = 1.1;

/** What the session contributes to {@link PlaybackFacts}. */
export type SessionFacts = Pick<
  PlaybackFacts,
  "waitingMs" | "neededBytesPerSecond" | "downloadLimit" | "proxyProblem"
> & {
  /** Our clock. */
  readonly unixMs: number;
};

/** Collects the facts that explain a wait, from the transfer and the session. */
export function playbackFacts(transfer: Transfer, session: SessionFacts): PlaybackFacts {
  const { live, transportType = "bt", figures } = transfer;
  const { waitingMs, downloadLimit, proxyProblem, neededBytesPerSecond } = session;
  return {
    waitingMs,
    downloadLimit,
    proxyProblem,
    transport: transportType,
    figures,
    neededBytesPerSecond: live ? live.content.file.info.bytesPerSecond : neededBytesPerSecond,
    live: live && liveFacts(live, session),
  };
}

function liveFacts(
  { content, figures, minutesAhead, isForked, successor }: NonNullable<Transfer["live"]>,
  { waitingMs, unixMs }: SessionFacts,
): LiveFacts {
  const { lastTsMs, hasEnded, parents } = figures();
  return {
    isOwn: content.role === "source",
    parents,
    hasEnded,
    isForked,
    movedTo: successor?.infohash,
    minutesAhead,
    // The clock of the source may differ from ours, but it cannot have been silent for longer than the player has waited.
    silentMs: lastTsMs === undefined ? waitingMs : Math.min(waitingMs, Math.max(0, unixMs - lastTsMs)),
  };
}

/**
 * Explains in one sentence why a player waits. The first reason that applies is reported, in this order: no peers or no
 * connection to them, no peer has the data, no peer sends it, a limit of this engine, the speed of the peers.
 */
export function explainBuffering(facts: PlaybackFacts): Buffering {
  const [code, sentence] = facts.live
    ? liveReason(facts, facts.live)
    : facts.transport === "bt"
      ? swarmReason(facts)
      : serverReason(facts);
  return { code, sentence, numbers: numbersOf(facts) };
}

type Reason = readonly [BufferingReason, sentence: string];

function swarmReason(facts: PlaybackFacts): Reason {
  const { figures } = facts;
  const { connectedPeers, unchokedByPeers, needed, nowhere, seeds } = figures;
  if (connectedPeers === 0) return noPeersReason(facts);
  if (figures.lacksLayers)
    return [
      "no_metadata",
      `The connected peers (${connectedPeers}) have not sent all piece hashes yet; links of BitTorrent v2 content do not contain them.`,
    ];
  if (!figures.hasMetadata)
    return [
      "no_metadata",
      `None of the connected peers (${connectedPeers}) has sent the metadata of the content yet.`,
    ];
  if (nowhere > 0 && nowhere === needed)
    return [
      "no_seed",
      `None of the connected peers (${connectedPeers}) has the data that is needed next (${counted(nowhere, "piece")}); seeds among them: ${seeds}.`,
    ];
  if (needed === 0)
    return ["disk", "The data that is needed next is already present: it is being read and prepared."];
  if (figures.isOutOfMemory)
    return ["disk", "Data arrives faster than the disk stores it, or --memory-limit is too low."];
  if (unchokedByPeers === 0)
    return [
      "choked",
      connectedPeers === 1
        ? "The only connected peer uploads to other peers and not to us (it is choking us)."
        : `All ${connectedPeers} connected peers upload to other peers and not to us (they are choking us).`,
    ];
  return limitReason(facts) ?? speedReason(facts, unchokedByPeers);
}

function liveReason(facts: PlaybackFacts, live: LiveFacts): Reason {
  const { connectedPeers } = facts.figures;
  if (live.isOwn)
    return live.silentMs > SOURCE_SILENT_MS
      ? ["source", `The input of this broadcast has sent nothing for ${seconds(live.silentMs)}.`]
      : ["source", "This broadcast has only just started."];
  if (live.movedTo !== undefined)
    return [
      "source",
      `The stream has moved to another key. Open its new link: sluice:?infohash=${live.movedTo}.`,
    ];
  if (live.hasEnded) return ["source", "The broadcast has ended."];
  if (live.minutesAhead > 0)
    return [
      "clock",
      `The stream is ${live.minutesAhead} min ahead of this machine's clock; it cannot be played until the clock of the source or of this machine is corrected.`,
    ];
  if (live.isForked)
    return [
      "source",
      "Two programs sign this stream with one key. Playback stays with one of them, and is stable again when the other one stops.",
    ];
  if (connectedPeers === 0) return noPeersReason(facts);
  if (live.parents === 0)
    return [
      "choked",
      `None of the connected peers (${connectedPeers}) has a free slot for one more viewer yet.`,
    ];
  if (live.silentMs > SOURCE_SILENT_MS)
    return [
      "source",
      `The source has sent nothing new for ${seconds(live.silentMs)}, according to ${counted(connectedPeers, "peer")}.`,
    ];
  return limitReason(facts) ?? speedReason(facts, live.parents);
}

function noPeersReason({ figures, proxyProblem }: PlaybackFacts): Reason {
  if (proxyProblem !== undefined)
    return ["proxy", `No peer is connected because the proxy (--proxy) fails: ${proxyProblem}.`];
  return ["no_peers", `No peer is connected: ${peerSearchSummary(figures)}.`];
}

function serverReason(facts: PlaybackFacts): Reason {
  if (facts.proxyProblem !== undefined && facts.figures.bytesPerSecondDown === 0)
    return ["proxy", `The server sends nothing because the proxy (--proxy) fails: ${facts.proxyProblem}.`];
  return ["server", `The server sends ${rate(facts.figures.bytesPerSecondDown)}${neededRate(facts)}.`];
}

function limitReason(facts: PlaybackFacts): Reason | undefined {
  const { limitedToBytesPerSecond: limit, bytesPerSecondDown } = facts.figures;
  if (limit === 0 || hasShareOfBitrate(facts, AMPLE_SHARE)) return undefined;
  const hasWholeLimit = bytesPerSecondDown >= WHOLE_LIMIT_SHARE * limit;
  const part = hasWholeLimit ? "" : `: this stream has ${rate(bytesPerSecondDown)} of it`;
  const setting = limit === facts.downloadLimit ? "--download-limit" : "--schedule";
  return ["own_limit", `The limit of ${rate(limit)} for downloads is used up (${setting})${part}.`];
}

function speedReason(facts: PlaybackFacts, sendingPeers: number): Reason {
  const down = rate(facts.figures.bytesPerSecondDown);
  if (hasShareOfBitrate(facts, ENOUGH_SHARE))
    return [
      "catching_up",
      `Data has only just started to arrive: ${down}, which is enough${neededRate(facts)}.`,
    ];
  return [
    "slow_peers",
    `The peers that send data (${sendingPeers}) send ${down} together${neededRate(facts)}.`,
  ];
}

/** Returns true if the data rate is at least `share` times the bitrate of the media. */
function hasShareOfBitrate({ figures, neededBytesPerSecond }: PlaybackFacts, share: number): boolean {
  return neededBytesPerSecond !== undefined && figures.bytesPerSecondDown >= share * neededBytesPerSecond;
}

function neededRate({ neededBytesPerSecond }: PlaybackFacts): string {
  return neededBytesPerSecond === undefined ? "" : `; playback needs about ${rate(neededBytesPerSecond)}`;
}

function numbersOf(facts: PlaybackFacts): Buffering["numbers"] {
  const { figures, waitingMs, neededBytesPerSecond, live } = facts;
  return {
    waiting_seconds: Math.round(waitingMs / 100) / 10,
    peers: figures.connectedPeers,
    giving_peers: live ? live.parents : figures.unchokedByPeers,
    bytes_per_second: Math.round(figures.bytesPerSecondDown),
    ...(neededBytesPerSecond !== undefined && {
      needed_bytes_per_second: Math.round(neededBytesPerSecond),
    }),
    ...(!live && figures.hasMetadata && { missing_pieces: figures.needed, nowhere: figures.nowhere }),
    ...(live && { source_silent_seconds: Math.round(live.silentMs / 100) / 10 }),
  };
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

/** Formats a rate in bytes per second. */
function rate(bytesPerSecond: number): string {
  if (bytesPerSecond >= 1e6) return `${(bytesPerSecond / 1e6).toFixed(1)} MB/s`;
  return `${Math.round(bytesPerSecond / 1e3)} kB/s`;
}
