import type { Infohash } from "../../base/ids.ts";
import { type Random, randomBelow, shuffle } from "../../base/random.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import type { AnnounceReply, AnnounceRequest } from "../../wire/tracker/announce.ts";

/** Options and dependencies of a tracker list. */
interface TrackerListSetup {
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly listenPort: number;
  /** Announce URLs by tier (BEP 12). */
  readonly tiers: readonly (readonly string[])[];
  readonly random: Random;
}

/** Statistics sent in an announce. Totals in bytes. */
export interface AnnounceStatus {
  readonly uploaded: number;
  readonly downloaded: number;
  /** Bytes missing to complete the content; 1 for a magnet without metadata, so that trackers count a leecher. */
  readonly left: number;
  /** Connected peers: with few, announces are more frequent and ask for more peers. */
  readonly peers: number;
  /** BEP 21: everything wanted is held, but not the whole content. */
  readonly isPaused: boolean;
}

/** Trackers of one content: magnets contain up to a few dozen, hostile ones thousands. */
const MAX_TRACKERS = 40;
/** Longest accepted announce URL. */
const MAX_URL_LENGTH = 2_048;
/** Limits on the announce interval, whatever a tracker returns. */
const MIN_INTERVAL_MS = 30_000;
const MAX_INTERVAL_MS = 3_600_000;
/** Announce interval with few peers, and with none, unless the tracker returns a minimum interval. */
const FEW_PEERS_INTERVAL_MS = 300_000;
const NO_PEERS_INTERVAL_MS = 60_000;
/** Fewer connected peers than this count as few. */
const FEW_PEERS = 10;
/** After the n-th consecutive failure a tracker is not retried for 15 s · 2^n, at most half an hour. */
const RETRY_MS = 15_000;
const MAX_RETRY_MS = 1_800_000;
/** An announce without a reply for this time has failed; the driver's own timeouts are far shorter. */
const REPLY_TIMEOUT_MS = 120_000;
/** Peers requested (`numwant`): as many as any tracker returns if more peers are needed, else few. */
const NUM_WANT_MANY = 200;
const NUM_WANT_FEW = 30;

interface Tracker {
  readonly url: string;
  /** The tracker has answered since the start, so it expects `stopped`. */
  hasAnswered: boolean;
  mustSendCompleted: boolean;
  /** The pending announce sends `completed`. */
  isSendingCompleted: boolean;
  failures: number;
  retryAt: Instant | undefined;
  announcedAt: Instant | undefined;
  trackerId: Uint8Array | undefined;
}

interface Tier {
  /** In the order in which they are tried; a tracker that answers moves to the front (BEP 12). */
  readonly trackers: Tracker[];
  /** When the next regular announce is due; undefined: at once. */
  nextAt: Instant | undefined;
  /** When the next announce is due with few peers, or with none; never before the tracker's minimum interval. */
  fewPeersAt: Instant | undefined;
  noPeersAt: Instant | undefined;
}

/**
 * Decides when to announce to which tracker (BEP 3, 12, 21). Unlike BEP 12, it uses the first working tracker of every
 * tier, not only of the first working tier: a player waits for the first peers, trackers of one content rarely know the
 * same peers, and an unreachable first tier would delay the start by its timeout.
 */
export class TrackerList {
  readonly #setup: TrackerListSetup;
  readonly #key: number;
  readonly #tiers: Tier[] = [];
  readonly #byUrl = new Map<string, { tracker: Tracker; tier: Tier }>();
  #state: "running" | "stopping" | "stopped" = "running";
  #peers = 0;

  constructor(setup: TrackerListSetup) {
    this.#setup = setup;
    this.#key = randomBelow(setup.random, 0x1_0000_0000);
    this.add(setup.tiers);
  }

  /** Number of known trackers. */
  get size(): number {
    return this.#byUrl.size;
  }

  /** Adds tiers, for example of a second magnet of the content; known trackers and those beyond the limit are ignored. */
  add(tiers: readonly (readonly string[])[]): void {
    for (const urls of tiers) {
      const tier: Tier = { trackers: [], nextAt: undefined, fewPeersAt: undefined, noPeersAt: undefined };
      // Shuffled within the tier (BEP 12), which distributes the load among its trackers.
      for (const url of shuffle([...urls], this.#setup.random)) {
        if (this.#byUrl.size >= MAX_TRACKERS || url.length > MAX_URL_LENGTH || this.#byUrl.has(url)) continue;
        const tracker: Tracker = {
          url,
          hasAnswered: false,
          mustSendCompleted: false,
          isSendingCompleted: false,
          failures: 0,
          retryAt: undefined,
          announcedAt: undefined,
          trackerId: undefined,
        };
        tier.trackers.push(tracker);
        this.#byUrl.set(url, { tracker, tier });
      }
      if (tier.trackers.length > 0) this.#tiers.push(tier);
    }
  }

  /** Returns the announces due at `now`; the caller reports each reply by `replied`. */
  due(status: AnnounceStatus, now: Instant): AnnounceRequest[] {
    this.#peers = status.peers;
    if (this.#state === "stopped") return [];
    if (this.#state === "stopping") return this.#stopAnnounces(status);
    const requests: AnnounceRequest[] = [];
    for (const tier of this.#tiers) {
      this.#expireAnnounces(tier, now);
      if (tier.trackers.some((tracker) => tracker.announcedAt !== undefined)) continue;
      const at = this.#dueAt(tier);
      if (at !== undefined && at > now) continue;
      const tracker =
        tier.trackers.find((each) => each.mustSendCompleted && isReady(each, now)) ??
        tier.trackers.find((each) => isReady(each, now));
      if (!tracker) continue;
      tracker.announcedAt = now;
      requests.push(this.#request(tracker, eventFor(tracker, status), status));
    }
    return requests;
  }

  /** A tracker replied, or could not be reached. The caller adds the peers of the reply to the candidates. */
  replied(url: string, reply: AnnounceReply, now: Instant): void {
    const found = this.#byUrl.get(url);
    if (!found || found.tracker.announcedAt === undefined) return;
    const { tracker, tier } = found;
    tracker.announcedAt = undefined;
    if (this.#state !== "running") return;
    if (reply.ok) this.#answered(tracker, tier, reply, now);
    else this.#failed(tracker, tier, now);
  }

  /** The content is complete: announces `completed` to one tracker of each tier (BEP 3), and retries only if it does not
   * answer. */
  completed(): void {
    for (const tier of this.#tiers) {
      const first = tier.trackers.find((tracker) => tracker.hasAnswered);
      if (first) first.mustSendCompleted = true;
    }
  }

  /** From now on `due` only returns one `stopped` announce for each tracker that has answered. */
  stop(): void {
    if (this.#state === "running") this.#state = "stopping";
  }

  /** When `due` must be called next; undefined: never. */
  nextWake(now: Instant): Instant | undefined {
    if (this.#state === "stopped") return undefined;
    if (this.#state === "stopping") return now;
    let next: Instant | undefined;
    for (const tier of this.#tiers) {
      const at = tier.trackers.find((tracker) => tracker.announcedAt !== undefined)?.announcedAt;
      next = earliest(next, at === undefined ? (this.#dueAt(tier) ?? now) : after(at, REPLY_TIMEOUT_MS));
    }
    return next;
  }

  #dueAt(tier: Tier): Instant | undefined {
    const completed = tier.trackers.find((tracker) => tracker.mustSendCompleted);
    const regular = this.#regularlyDueAt(tier);
    // A failed announce waits for its retry time before `completed` is sent again.
    return completed === undefined ? regular : completed.retryAt && earliest(completed.retryAt, regular);
  }

  #regularlyDueAt(tier: Tier): Instant | undefined {
    if (this.#peers === 0 && tier.noPeersAt !== undefined) return tier.noPeersAt;
    if (this.#peers < FEW_PEERS && tier.fewPeersAt !== undefined) return tier.fewPeersAt;
    return tier.nextAt;
  }

  #answered(tracker: Tracker, tier: Tier, reply: AnnounceReply & { ok: true }, now: Instant): void {
    tracker.hasAnswered = true;
    tracker.failures = 0;
    tracker.retryAt = undefined;
    tracker.isSendingCompleted = false;
    if (reply.trackerId) tracker.trackerId = reply.trackerId;
    tier.trackers.splice(tier.trackers.indexOf(tracker), 1);
    tier.trackers.unshift(tracker);
    const minimum = clampInterval((reply.minIntervalSeconds ?? 0) * 1000);
    const interval = Math.max(clampInterval(reply.intervalSeconds * 1000), minimum);
    const atMost = (ms: number) =>
      reply.minIntervalSeconds === undefined ? Math.min(interval, ms) : minimum;
    tier.nextAt = after(now, interval);
    tier.fewPeersAt = after(now, atMost(FEW_PEERS_INTERVAL_MS));
    tier.noPeersAt = after(now, atMost(NO_PEERS_INTERVAL_MS));
  }

  #failed(tracker: Tracker, tier: Tier, now: Instant): void {
    tracker.retryAt = after(now, Math.min(RETRY_MS * 2 ** tracker.failures, MAX_RETRY_MS));
    tracker.failures++;
    tracker.mustSendCompleted ||= tracker.isSendingCompleted;
    tracker.isSendingCompleted = false;
    tier.fewPeersAt = undefined;
    tier.noPeersAt = undefined;
    // Tries the next tracker of the tier at once; if all have failed, waits for the first retry time.
    const isAnyReady = tier.trackers.some((each) => isReady(each, now));
    tier.nextAt = isAnyReady ? undefined : earliestRetry(tier);
  }

  #expireAnnounces(tier: Tier, now: Instant): void {
    for (const tracker of tier.trackers) {
      if (tracker.announcedAt === undefined || now < after(tracker.announcedAt, REPLY_TIMEOUT_MS)) continue;
      tracker.announcedAt = undefined;
      this.#failed(tracker, tier, now);
      return;
    }
  }

  #stopAnnounces(status: AnnounceStatus): AnnounceRequest[] {
    this.#state = "stopped";
    const answered = this.#tiers.flatMap((tier) => tier.trackers).filter((tracker) => tracker.hasAnswered);
    return answered.map((tracker) => this.#request(tracker, "stopped", status));
  }

  #request(tracker: Tracker, event: AnnounceRequest["event"], status: AnnounceStatus): AnnounceRequest {
    if (event === "completed") {
      tracker.mustSendCompleted = false;
      tracker.isSendingCompleted = true;
    }
    return {
      url: tracker.url,
      infohash: this.#setup.infohash,
      peerId: this.#setup.peerId,
      port: this.#setup.listenPort,
      uploaded: status.uploaded,
      downloaded: status.downloaded,
      left: status.left,
      event,
      numWant: event === "stopped" ? 0 : status.peers < 2 * FEW_PEERS ? NUM_WANT_MANY : NUM_WANT_FEW,
      key: this.#key,
      ...(tracker.trackerId && { trackerId: tracker.trackerId }),
    };
  }
}

function eventFor(tracker: Tracker, status: AnnounceStatus): AnnounceRequest["event"] {
  if (!tracker.hasAnswered) return "started";
  if (tracker.mustSendCompleted) return "completed";
  return status.isPaused ? "paused" : "none";
}

function isReady(tracker: Tracker, now: Instant): boolean {
  return tracker.retryAt === undefined || tracker.retryAt <= now;
}

function clampInterval(ms: number): number {
  return ms > MIN_INTERVAL_MS ? Math.min(ms, MAX_INTERVAL_MS) : MIN_INTERVAL_MS;
}

function earliestRetry(tier: Tier): Instant | undefined {
  let next: Instant | undefined;
  for (const tracker of tier.trackers) next = earliest(next, tracker.retryAt);
  return next;
}
