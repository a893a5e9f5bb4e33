import type { PeerFigures } from "../../protocol/swarm/contract.ts";
import type { Transfer } from "../../transfer/contract.ts";
import type { Buffering, PeerDiagnosis, StreamDiagnosis } from "./contract.ts";

/** A peer below this share of the average rate is slow. Smaller differences come from how the picker spreads requests. */
const SLOW_SHARE = 0.25;
/** Below this rate a peer sends protocol messages only. */
const MIN_DATA_BYTES_PER_SECOND = 1_000;

/** Describes the peers of one transfer: how fast each sends, and why some do not. */
export function diagnoseStream(
  transfer: Transfer,
  playersBuffering: readonly (Buffering | undefined)[],
): StreamDiagnosis {
  const { figures, infohash, name } = transfer;
  const sending = figures.peers.filter(
    ({ bytesPerSecondDown }) => bytesPerSecondDown > MIN_DATA_BYTES_PER_SECOND,
  );
  const averageBytesPerSecond =
    sending.reduce((sum, { bytesPerSecondDown }) => sum + bytesPerSecondDown, 0) /
    Math.max(1, sending.length);
  const origins: Record<string, number> = {};
  for (const { origin } of figures.peers) origins[origin] = (origins[origin] ?? 0) + 1;
  return {
    infohash,
    name,
    playersBuffering,
    origins,
    peers: figures.peers.map((peer) => diagnosePeer(peer, averageBytesPerSecond)),
  };
}

function diagnosePeer(peer: PeerFigures, averageBytesPerSecond: number): PeerDiagnosis {
  const { address, client, origin, bytesPerSecondDown, bytesPerSecondUp } = peer;
  return {
    address,
    client,
    origin,
    bytesPerSecondDown,
    bytesPerSecondUp,
    slow: reasonForSlowness(peer, averageBytesPerSecond),
  };
}

/** For the letters see {@link PeerFigures.flags}. */
function reasonForSlowness(
  { flags, bytesPerSecondDown }: PeerFigures,
  averageBytesPerSecond: number,
): string | undefined {
  if (flags.includes("D")) return "it is choking us: it uploads to other peers";
  if (flags.includes("s")) return "it has not answered requests for a while";
  if (!flags.includes("d")) return undefined;
  if (bytesPerSecondDown >= SLOW_SHARE * averageBytesPerSecond) return undefined;
  return "its connection is slow";
}
