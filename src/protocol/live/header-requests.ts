import type { LackingMessage } from "../../wire/live/request.ts";
import type { Chunks } from "./chunks.ts";
import { HEADER_WAIT_MS, MAX_HEADERS_ANSWERED, NO_DATA_MS, WIN_INTERVAL_MS } from "./limits.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** If no new header arrives within this time, ask another peer for one. */
const NEW_HEADER_TIMEOUT_MS = 500;
/** While a stripe has no parent, the source is asked if the next header is late by this. */
const ORPHAN_HEADER_MS = 150;
/** Interval and maximum number of the requests for one gap. */
const GAP_RETRY_MS = 150;
const MAX_GAP_REQUESTS = 4;
/** A peer that has refused headers is not asked for this time, in which its allowance for us refills. */
const REFUSED_MS = 2_000;
/** Skip a gap longer than this if no peer can fill it: the source lost that data in a crash. */
const UNFILLABLE_GAP_MS = 1_000;
/** After this time every neighbour has sent at least one WIN. */
const ALL_WINDOWS_KNOWN_MS = 2 * WIN_INTERVAL_MS;

/** A run of sequence numbers without headers between two known pieces. */
interface HeaderGap {
  readonly firstSeq: number;
  readonly end: number;
  readonly since: number;
  readonly requested: LivePeer[];
  requestAt: number;
}

/** Requests missing headers: at the start, for waiting chunks, in gaps, and the newest ones. */
export class HeaderRequests {
  readonly #state: LiveState;
  readonly #chunks: Chunks;
  readonly #orphans: () => number;
  #newestAt = 0;
  #epochsAt = 0;
  /** For a source: which peer is next, and the newest piece that each peer was asked for. */
  #turn = 0;
  readonly #requestedSeq = new WeakMap<LivePeer, number>();
  #gap: HeaderGap | undefined;

  /** `orphans` returns the number of stripes without a parent. */
  constructor(state: LiveState, chunks: Chunks, orphans: () => number) {
    this.#state = state;
    this.#chunks = chunks;
    this.#orphans = orphans;
  }

  /** A new header has arrived. */
  headerArrived(): void {
    this.#newestAt = this.#state.now;
  }

  /** Handles a NAK: a peer that refuses headers is not asked for a while. */
  refused(from: LivePeer, { chunks }: LackingMessage): void {
    const { window, now } = this.#state;
    const isRefused = chunks.some(({ stripe, reason }) => stripe >= window.stripes && reason === "busy");
    if (isRefused) from.headersAvoidUntil = now + REFUSED_MS;
  }

  /** Sends the requests that are due. */
  round(): void {
    for (const { seq, from } of this.#chunks.headersMissing()) this.#request(from, seq, 1);
    this.#fillGaps();
    this.#requestNewest();
    this.#requestOtherEpochs();
  }

  /** For a source: looks for another source with the same key. Peers whose WIN shows a later epoch are
   * asked for its header. If another source may use the same epoch, the peers are asked in turn for the
   * header of a number that this source has made. */
  detectOtherSource(): void {
    const { now, peers, epoch, window } = this.#state;
    if (window.head < 0 || now < this.#epochsAt) return;
    this.#epochsAt = now + NEW_HEADER_TIMEOUT_MS;
    const reporting = [...peers.values()].filter((peer) => peer.window && peer.headOf(0) >= 0);
    for (const peer of reporting) {
      if (peer.window!.epoch > epoch) this.#requestOnce(peer, peer.headOf(0), peer.window!.epoch);
    }
    if (!this.#state.setup.mayShareEpoch) return;
    const same = reporting.filter((peer) => peer.window!.epoch === epoch);
    const one = same[this.#turn++ % Math.max(1, same.length)];
    if (one) this.#requestOnce(one, Math.min(one.headOf(0), window.head), epoch);
  }

  /** Requests a header unless the peer was asked for it before: repeated answers would count as its fault. */
  #requestOnce(peer: LivePeer, seq: number, epoch: number): void {
    if (seq <= (this.#requestedSeq.get(peer) ?? -1)) return;
    this.#requestedSeq.set(peer, seq);
    this.#request(peer, seq, 1, epoch);
  }

  /** Requests the headers from `firstSeq` on from a peer that knows the head: they show where playback can
   * start. */
  requestRecent(firstSeq: number): void {
    const { window, peers } = this.#state;
    for (const peer of peers.values()) {
      if (peer.head?.value.seq !== window.head) continue;
      for (let seq = firstSeq; seq < window.head; seq += MAX_HEADERS_ANSWERED)
        this.#request(peer, seq, Math.min(MAX_HEADERS_ANSWERED, window.head - seq));
      return;
    }
  }

  /** The state of a piece without a header: still being requested; may arrive until its deadline; or lost
   * in a crash of the source. */
  gapState(seq: number): "requesting" | "waiting" | "lost" {
    const gap = this.#gap;
    if (!gap || seq < gap.firstSeq || seq >= gap.end) return "requesting";
    const { now } = this.#state;
    const isRequested =
      now >= gap.requestAt && (gap.requested.length >= MAX_GAP_REQUESTS || !this.#holder(gap));
    if (now < gap.since + ALL_WINDOWS_KNOWN_MS) return "requesting";
    const isLong = gap.end - gap.firstSeq > this.#state.piecesIn(UNFILLABLE_GAP_MS);
    return isLong && isRequested ? "lost" : "waiting";
  }

  /** Requests the headers of the first gap. A header travels on three stripes; if all copies and all chunks
   * of its piece were lost, nothing else shows that it is missing. */
  #fillGaps(): void {
    const { now } = this.#state;
    const found = this.#firstGap();
    if (!found) {
      this.#gap = undefined;
      return;
    }
    // The start of the gap moves when pieces are skipped.
    const isSame = this.#gap?.end === found.end;
    const known = isSame ? this.#gap! : { since: now, requested: [], requestAt: now + HEADER_WAIT_MS };
    const gap: HeaderGap = { ...known, ...found };
    this.#gap = gap;
    if (now < gap.requestAt || gap.requested.length >= MAX_GAP_REQUESTS) return;
    const holder = this.#holder(gap);
    if (!holder) return;
    gap.requested.push(holder);
    gap.requestAt = now + GAP_RETRY_MS + holder.rttMs;
    const firstSeq = Math.max(gap.firstSeq, holder.window?.oldestSeq ?? 0);
    this.#request(holder, firstSeq, gap.end - firstSeq);
  }

  #firstGap(): Pick<HeaderGap, "firstSeq" | "end"> | undefined {
    const { window, nextSeq } = this.#state;
    if (nextSeq < 0) return undefined;
    let firstSeq = Math.max(nextSeq, window.oldest);
    while (firstSeq < window.head && (window.piece(firstSeq) || window.isGap(firstSeq))) firstSeq++;
    const end = firstSeq < window.head ? window.above(firstSeq)?.seq : undefined;
    return end === undefined ? undefined : { firstSeq, end };
  }

  /** Returns a peer whose WIN covers the end of the gap and that was not asked. */
  #holder({ end, requested }: HeaderGap): LivePeer | undefined {
    const { peers, epoch } = this.#state;
    let unproven: LivePeer | undefined;
    for (const peer of peers.values()) {
      if (peer.window?.epoch !== epoch || requested.includes(peer)) continue;
      // A source that restarted may have only the end of the gap.
      if (peer.window.oldestSeq >= end || peer.headOf(0) < end - 1) continue;
      if (isReliable(peer)) return peer;
      unproven ??= peer;
    }
    return unproven;
  }

  /** If no header has arrived for a while and a neighbour has newer pieces, requests their headers, so that
   * pulls can start. A WIN is a claim, so the source or a trusted peer is asked as well. */
  #requestNewest(): void {
    const { now, window, peers, epoch } = this.#state;
    const isOrphaned = this.#orphans() > 0;
    const { pieceMs } = this.#state.setup.layout;
    const timeoutMs = isOrphaned ? pieceMs + ORPHAN_HEADER_MS : NEW_HEADER_TIMEOUT_MS;
    if (window.head < 0 || now - this.#newestAt < timeoutMs) return;
    this.#newestAt = now;
    const source = [...peers.values()].find((peer) => peer.about.role === "source" && peer.hasSentHello);
    if (isOrphaned && source) {
      this.#request(source, window.head + 1, 8);
      return;
    }
    const least = window.head + this.#state.piecesIn(NEW_HEADER_TIMEOUT_MS);
    const ahead = [...peers.values()].filter(
      (peer) => peer.window?.epoch === epoch && peer.headOf(0) > least,
    );
    const asked = new Set([newestOf(ahead), newestOf(ahead.filter(isReliable))]);
    for (const peer of asked) if (peer) this.#request(peer, Math.max(window.head + 1, peer.headOf(0) - 7), 8);
  }

  /** Requests headers from neighbours whose WIN shows a later epoch, because the source has restarted and
   * our parents may not know; and from those of an earlier epoch if the current one brings no data. */
  #requestOtherEpochs(): void {
    const { now, peers, epoch, window, dataAt } = this.#state;
    if (window.head < 0 || now < this.#epochsAt) return;
    this.#epochsAt = now + NEW_HEADER_TIMEOUT_MS;
    const hasNoData = now - dataAt > NO_DATA_MS;
    for (const peer of peers.values()) {
      const newest = peer.headOf(0);
      if (!peer.window || peer.window.epoch === epoch || newest < 0) continue;
      if (peer.window.epoch < epoch && !hasNoData) continue;
      this.#request(peer, Math.max(0, newest - 7), 8, peer.window.epoch);
    }
  }

  #request(peer: LivePeer, firstSeq: number, count: number, epoch = this.#state.epoch): void {
    if (count <= 0 || peer.headersAvoidUntil > this.#state.now) return;
    this.#state.send(peer, {
      kind: "headerRequest",
      epoch,
      firstSeq,
      count: Math.min(count, MAX_HEADERS_ANSWERED),
      step: 1,
      onlyRandomAccess: false,
    });
  }
}

/** Whether its WIN is more than a claim. */
function isReliable(peer: LivePeer): boolean {
  return peer.about.role === "source" || peer.isTrusted;
}

/** Returns the peer with the newest piece of the first stripe. */
function newestOf(peers: readonly LivePeer[]): LivePeer | undefined {
  let newest: LivePeer | undefined;
  for (const peer of peers) if (!newest || peer.headOf(0) > newest.headOf(0)) newest = peer;
  return newest;
}
