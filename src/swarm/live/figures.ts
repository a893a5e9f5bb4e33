import { type Instant, instant } from "../../base/time.ts";
import type { LiveFigures } from "./contract.ts";
import type { LiveState } from "./state.ts";

/** The part of the lag that peers have used up who are counted as starving; half of it is what a deep tree takes. */
const STARVING_LAG = 0.66;

/** Who has just come has not told yet what it knows. */
const SETTLED_MS = 1_000;

/** What `stat` and `livepos` show. */
export function liveFigures(state: LiveState, now: Instant): LiveFigures {
  const { window, timeline, nextSeq, startSeq } = state;
  const isKnown = window.head >= 0;
  const firstSeq = isKnown ? Math.max(window.oldest, startSeq) : undefined;
  const first = firstSeq === undefined ? undefined : window.piece(firstSeq);
  const last = window.piece(window.head);
  const position = nextSeq < 0 ? undefined : nextSeq;
  const played = position === undefined ? undefined : (window.piece(position) ?? window.piece(position - 1));
  let bufferedPieces = 0;
  while (position !== undefined && window.isWhole(position + bufferedPieces)) bufferedPieces++;
  const peers = [...state.peers.values()];
  return {
    peers: peers.length,
    parents: peers.filter(({ parentOf }) => parentOf !== 0).length,
    children: peers.filter(({ childOf }) => childOf !== 0).length,
    firstSeq,
    lastSeq: isKnown ? window.head : undefined,
    firstTsMs: first?.header.value.timestampMs,
    lastTsMs: last?.header.value.timestampMs,
    positionSeq: position,
    bufferedPieces,
    lagMs: played ? Math.max(0, timeline.latenessMs(played.header.value.timestampMs, now)) : 0,
    receivedBytes: state.receivedBytes,
    duplicateBytes: state.duplicateBytes,
    skippedPieces: state.skippedPieces,
    hasEnded: state.hasEnded,
    starvingPeers: peers.filter(
      ({ window: told }) => told !== undefined && told.lagMs > STARVING_LAG * state.setup.lagMs,
    ).length,
    newest: last?.header.value,
    heardAt: latest(peers.flatMap(({ openedAt, heardAt }) => (now - openedAt > SETTLED_MS ? heardAt : []))),
  };
}

function latest(times: readonly number[]): Instant | undefined {
  return times.length === 0 ? undefined : instant(Math.max(...times));
}
