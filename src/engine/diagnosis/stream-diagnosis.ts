import type { PeerFigures } from "../../swarm/contract.ts";
import type { Transfer } from "../contract.ts";
import type { HoldUp, PeerDiagnosis, StreamDiagnosis } from "./contract.ts";

/** A peer that gives less than this share of the fair one is slow: the rest is how the picker spreads what it asks for. */
const SLOW_SHARE = 0.25;
/** Rates below this are those of words. */
const SOME_BYTES_PER_SECOND = 1_000;

/** What is known of one transfer: who gives it, and who does not and why. */
export function diagnoseStream(
  transfer: Transfer,
  holdUps: readonly (HoldUp | undefined)[],
): StreamDiagnosis {
  const { figures, infohash, name } = transfer;
  const giving = figures.peers.filter(({ bytesPerSecondDown }) => bytesPerSecondDown > SOME_BYTES_PER_SECOND);
  const fair =
    giving.reduce((sum, { bytesPerSecondDown }) => sum + bytesPerSecondDown, 0) / Math.max(1, giving.length);
  const origins: Record<string, number> = {};
  for (const { origin } of figures.peers) origins[origin] = (origins[origin] ?? 0) + 1;
  return {
    infohash,
    name,
    holdUps,
    origins,
    peers: figures.peers.map((peer) => diagnosePeer(peer, fair)),
  };
}

function diagnosePeer(peer: PeerFigures, fairBytesPerSecond: number): PeerDiagnosis {
  const { address, client, origin, bytesPerSecondDown, bytesPerSecondUp } = peer;
  return {
    address,
    client,
    origin,
    bytesPerSecondDown,
    bytesPerSecondUp,
    slow: slowBecause(peer, fairBytesPerSecond),
  };
}

/** The letters are those of {@link PeerFigures.flags}. */
function slowBecause({ flags, bytesPerSecondDown }: PeerFigures, fair: number): string | undefined {
  if (flags.includes("D")) return "it chokes us: its upload goes to others";
  if (flags.includes("s")) return "it has not sent for a while what it was asked for";
  if (!flags.includes("d")) return undefined;
  if (bytesPerSecondDown >= SLOW_SHARE * fair) return undefined;
  return "its line is slow or far away";
}
