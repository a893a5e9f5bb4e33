import { trackerNews } from "../tracker-news.ts";
import type { HoldUp, HoldUpCode, HoldUpNumbers, PlaybackFacts } from "./contract.ts";

/** A source that has sent nothing for so long is what everybody waits for; pieces come several times a second. */
export const SOURCE_SILENT_MS = 4_000;
/** Who has less than this share of our own limit is told how much it has. */
const WHOLE_SHARE = 0.75;
/** A limit that leaves so many times what the media needs is not why a player waits. */
const AMPLE_SHARE = 2;
/** Peers that give this share of what the media needs do; the rest is chance. */
const ENOUGH_SHARE = 1.1;

/**
 * Why a player waits, in one sentence, from what is known at this moment. The first that explains it all is the answer:
 * nobody there (or no way to them), nobody who has it, nobody who gives it, ourselves, and only then how fast they are.
 */
export function explainHoldUp(facts: PlaybackFacts): HoldUp {
  const [code, sentence] = facts.live
    ? ofLive(facts, facts.live)
    : facts.transport === "bt"
      ? ofSwarm(facts)
      : ofServer(facts);
  return { code, sentence, numbers: numbersOf(facts) };
}

type Reason = readonly [HoldUpCode, string];

function ofSwarm(facts: PlaybackFacts): Reason {
  const { figures } = facts;
  const { connectedPeers, unchokedByPeers, needed, nowhere } = figures;
  if (connectedPeers === 0) return alone(facts);
  if (figures.lacksLayers)
    return [
      "no_metadata",
      `The connected peers (${connectedPeers}) have not sent all hashes of the pieces yet, which links of BitTorrent v2 do not bring.`,
    ];
  if (!figures.hasMetadata)
    return [
      "no_metadata",
      `None of the connected peers (${connectedPeers}) has sent the description of the content yet.`,
    ];
  if (nowhere > 0 && nowhere === needed)
    return [
      "no_seed",
      `None of the connected peers (${connectedPeers}) has what is needed next (${pieces(nowhere)}), and ${seeds(figures.seeds)}.`,
    ];
  if (needed === 0)
    return ["disk", "What is needed next is here already: it is being read from the disk, and made ready."];
  if (figures.isOutOfMemory)
    return [
      "disk",
      "Pieces come faster than the disk takes them, or --memory-limit has no room for more of them.",
    ];
  if (unchokedByPeers === 0)
    return [
      "choked",
      connectedPeers === 1
        ? "The one peer lets us wait (it chokes us): its upload goes to others."
        : `All of ${peers(connectedPeers)} let us wait (they choke us): their upload goes to others.`,
    ];
  return limited(facts) ?? slow(facts, unchokedByPeers);
}

function ofLive(facts: PlaybackFacts, live: NonNullable<PlaybackFacts["live"]>): Reason {
  const { connectedPeers } = facts.figures;
  if (live.isOwn)
    return live.silentMs > SOURCE_SILENT_MS
      ? [
          "source",
          `What we broadcast here gives nothing: its source has been silent for ${seconds(live.silentMs)}.`,
        ]
      : ["source", "What we broadcast here has only begun."];
  if (live.hasEnded) return ["source", "The broadcast has ended."];
  if (live.minutesAhead > 0)
    return [
      "clock",
      `The stream is ${live.minutesAhead} min ahead of this machine's clock, and nothing of it is played before one of the two clocks is set right.`,
    ];
  if (connectedPeers === 0) return alone(facts);
  if (live.parents === 0)
    return [
      "choked",
      `None of the connected peers (${connectedPeers}) has room for one more viewer yet: their upload goes to others.`,
    ];
  if (live.silentMs > SOURCE_SILENT_MS)
    return [
      "source",
      `The source has sent nothing new for ${seconds(live.silentMs)}, as far as ${peers(connectedPeers)} ${connectedPeers === 1 ? "knows" : "know"}.`,
    ];
  return limited(facts) ?? slow(facts, live.parents);
}

function alone({ figures, proxyProblem }: PlaybackFacts): Reason {
  if (proxyProblem !== undefined)
    return ["proxy", `No peer is connected, as the proxy does not carry us (--proxy): ${proxyProblem}.`];
  return ["no_peers", `No peer is connected: ${trackerNews(figures)}.`];
}

function ofServer(facts: PlaybackFacts): Reason {
  if (facts.proxyProblem !== undefined && facts.figures.bytesPerSecondDown === 0)
    return [
      "proxy",
      `The server sends nothing, and the proxy does not carry us (--proxy): ${facts.proxyProblem}.`,
    ];
  return ["server", `The server sends ${rate(facts.figures.bytesPerSecondDown)}${wanted(facts)}.`];
}

function limited(facts: PlaybackFacts): Reason | undefined {
  const { heldToBytesPerSecond: limit, bytesPerSecondDown } = facts.figures;
  if (limit === 0 || isEnough(facts, AMPLE_SHARE)) return undefined;
  const isAll = bytesPerSecondDown >= WHOLE_SHARE * limit;
  const part = isAll ? "" : `: this stream has ${rate(bytesPerSecondDown)} of it`;
  const setting = limit === facts.downloadLimit ? "--download-limit" : "--schedule";
  return ["own_limit", `Our own limit of ${rate(limit)} for downloads is used up (${setting})${part}.`];
}

function slow(facts: PlaybackFacts, giving: number): Reason {
  const { figures } = facts;
  if (isEnough(facts, ENOUGH_SHARE))
    return [
      "catching_up",
      `It has only begun to come: ${rate(figures.bytesPerSecondDown)}, which is enough${wanted(facts)}.`,
    ];
  return [
    "slow_peers",
    `The peers that give (${giving}) send ${rate(figures.bytesPerSecondDown)} together${wanted(facts)}.`,
  ];
}

/** Whether so many times what the media needs comes. */
function isEnough({ figures, neededBytesPerSecond }: PlaybackFacts, share: number): boolean {
  return neededBytesPerSecond !== undefined && figures.bytesPerSecondDown >= share * neededBytesPerSecond;
}

function wanted({ neededBytesPerSecond }: PlaybackFacts): string {
  return neededBytesPerSecond === undefined ? "" : `; it takes about ${rate(neededBytesPerSecond)} to play`;
}

function numbersOf(facts: PlaybackFacts): HoldUpNumbers {
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

function peers(count: number): string {
  return count === 1 ? "1 peer" : `${count} peers`;
}

function pieces(count: number): string {
  return count === 1 ? "1 piece" : `${count} pieces`;
}

function seeds(count: number): string {
  return count === 0 ? "no seed is among them" : `of seeds there are ${count}`;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

/** Bytes a second, as people write them. */
function rate(bytesPerSecond: number): string {
  if (bytesPerSecond >= 1e6) return `${(bytesPerSecond / 1e6).toFixed(1)} MB/s`;
  return `${Math.round(bytesPerSecond / 1e3)} kB/s`;
}
