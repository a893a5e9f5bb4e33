import type { LiveContent } from "./contract.ts";

/** What a live stream may take of this machine. */
export interface LiveBudget {
  /** How long the swarm keeps pieces in memory for others. */
  readonly keepMs: number;
  /** What we tell others that we can upload. */
  readonly offeredBytesPerSecond: number;
}

/** Long enough for whoever is late or joins; more would be history, which is on disk. */
const KEEP_MS = 30_000;
const LEAST_KEEP_MS = 8_000;
/** Pieces in memory take no more, even where each is as large as the stream allows. */
const KEEP_BYTES = 96 * 1024 * 1024;
/** Upload beyond twice the rate is rarely there at home, and whoever promises it makes others late. */
const VIEWER_SHARE = 2;
/** Sources and relays are put where upload is. */
const SERVER_SHARE = 8;

/** The budget of one stream; `uploadLimit` is the user's, 0 for none. */
export function liveBudget(content: LiveContent, uploadLimit: number): LiveBudget {
  const { role, file, uploadBytesPerSecond } = content;
  const { pieceMs, maxPieceBytes, bytesPerSecond } = file.info;
  const keptMs = (KEEP_BYTES / maxPieceBytes) * pieceMs;
  const limit = uploadBytesPerSecond || uploadLimit || Number.POSITIVE_INFINITY;
  const share = role === "viewer" ? VIEWER_SHARE : SERVER_SHARE;
  return {
    keepMs: Math.max(LEAST_KEEP_MS, Math.min(KEEP_MS, keptMs)),
    offeredBytesPerSecond: Math.floor(Math.min(limit, share * bytesPerSecond)),
  };
}
