import type { Transfer } from "../contract.ts";
import type { LiveFacts, PlaybackFacts } from "./contract.ts";

/** What the session itself knows. */
export type SessionFacts = Pick<
  PlaybackFacts,
  "waitingMs" | "neededBytesPerSecond" | "downloadLimit" | "proxyProblem"
> & {
  /** Our clock. */
  readonly unixMs: number;
};

/** What is known of why a session waits, from its transfer and from itself. */
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
  { content, figures, minutesAhead }: NonNullable<Transfer["live"]>,
  { waitingMs, unixMs }: SessionFacts,
): LiveFacts {
  const { lastTsMs, hasEnded, parents } = figures();
  return {
    isOwn: content.role === "source",
    parents,
    hasEnded,
    minutesAhead,
    // Its clock is not ours; but it has not sent anything since we wait, or it would not be waited for.
    silentMs: lastTsMs === undefined ? waitingMs : Math.min(waitingMs, Math.max(0, unixMs - lastTsMs)),
  };
}
