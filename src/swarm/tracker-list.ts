import type { Infohash } from "../base/ids.ts";
import { type Random, randomBelow, shuffle } from "../base/random.ts";
import { after, earliest, type Instant } from "../base/time.ts";
import type { AnnounceReply, AnnounceRequest } from "../wire/tracker.ts";

/** What the tracker list is made of. */
export interface TrackerListSetup {
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly listenPort: number;
  /** Announce URLs by tier (BEP 12). */
  readonly tiers: readonly (readonly string[])[];
  readonly random: Random;
}

/** What an announce says of us. Totals in bytes. */
export interface AnnounceStatus {
  readonly uploaded: number;
  readonly downloaded: number;
  /** Bytes missing to the whole content; a magnet without metadata says 1, so that trackers count it as a leecher. */
  readonly left: number;
  /** Connected peers: with few we ask sooner and for more. */
  readonly peers: number;
  /** BEP 21: we hold all we want for now, and it is not everything. */
  readonly isPaused: boolean;
}

/** Trackers of one content: magnets carry up to some dozens, hostile ones thousands. */
const MAX_TRACKERS = 40;
/** Longest announce URL taken; longer ones are hostile. */
const MAX_URL_LENGTH = 2_048;
/** Whatever a tracker says, we come back neither sooner nor later than this. */
const MIN_INTERVAL_MS = 30_000;
const MAX_INTERVAL_MS = 3_600_000;
/** With few peers we come back after the tracker's minimum, or after this where it names none. */
const HUNGRY_INTERVAL_MS = 300_000;
const STARVING_INTERVAL_MS = 60_000;
/** Fewer connected peers than this are few. */
const FEW_PEERS = 10;
/** After the n-th failure in a row a tracker rests 15 s · 2^n, at most half an hour. */
const RETRY_MS = 15_000;
const MAX_RETRY_MS = 1_800_000;
/** An announce without an answer for so long has failed; the driver's own time-outs are far shorter. */
const LOST_MS = 120_000;
/** Peers asked for: as many as any tracker gives while we look for peers, few when we have enough. */
const NUM_WANT_HUNGRY = 200;
const NUM_WANT_FED = 30;

interface Tracker {
  readonly url: string;
  /** It has answered at least once since the start: it knows us, and wants to hear `stopped`. */
  knowsUs: boolean;
  owesCompleted: boolean;
  /** The announce that is under way says so. */
  saysCompleted: boolean;
  failures: number;
  retryAt: Instant | undefined;
  askedAt: Instant | undefined;
  trackerId: Uint8Array | undefined;
}

interface Tier {
  /** In the order of trial; a tracker that works moves to the front (BEP 12). */
  readonly trackers: Tracker[];
  /** When to announce again in the ordinary way; undefined: at once. */
  nextAt: Instant | undefined;
  /** When to announce again if peers are few, or none; never before the tracker's own minimum. */
  hungryAt: Instant | undefined;
  starvingAt: Instant | undefined;
}

/**
 * When to announce to which tracker (BEP 3, 12, 21). Unlike BEP 12, the first working tracker of every tier is used,
 * and not only the first working tier: a player waits for the first peers, trackers of one content seldom know the
 * same peers, and a dead first tier would otherwise cost its whole time-out.
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

  /** How many trackers are known. */
  get size(): number {
    return this.#byUrl.size;
  }

  /** Takes further tiers (a second magnet of the same content, say); known trackers and those beyond 40 are left out. */
  add(tiers: readonly (readonly string[])[]): void {
    for (const urls of tiers) {
      const tier: Tier = { trackers: [], nextAt: undefined, hungryAt: undefined, starvingAt: undefined };
      // Shuffled within the tier (BEP 12), so that the load spreads over its trackers.
      for (const url of shuffle([...urls], this.#setup.random)) {
        if (this.#byUrl.size >= MAX_TRACKERS || url.length > MAX_URL_LENGTH || this.#byUrl.has(url)) continue;
        const tracker: Tracker = {
          url,
          knowsUs: false,
          owesCompleted: false,
          saysCompleted: false,
          failures: 0,
          retryAt: undefined,
          askedAt: undefined,
          trackerId: undefined,
        };
        tier.trackers.push(tracker);
        this.#byUrl.set(url, { tracker, tier });
      }
      if (tier.trackers.length > 0) this.#tiers.push(tier);
    }
  }

  /** The announces due at `now`; each is to be answered by `replied`. */
  due(status: AnnounceStatus, now: Instant): AnnounceRequest[] {
    this.#peers = status.peers;
    if (this.#state === "stopped") return [];
    if (this.#state === "stopping") return this.#goodbyes(status);
    const requests: AnnounceRequest[] = [];
    for (const tier of this.#tiers) {
      this.#giveUpLost(tier, now);
      if (tier.trackers.some((tracker) => tracker.askedAt !== undefined)) continue;
      const at = this.#dueAt(tier);
      if (at !== undefined && at > now) continue;
      const tracker =
        tier.trackers.find((each) => each.owesCompleted && isRested(each, now)) ??
        tier.trackers.find((each) => isRested(each, now));
      if (!tracker) continue;
      tracker.askedAt = now;
      requests.push(this.#request(tracker, eventFor(tracker, status), status));
    }
    return requests;
  }

  /** A tracker answered, or could not be reached. The caller gives the peers of the reply to the candidates. */
  replied(url: string, reply: AnnounceReply, now: Instant): void {
    const found = this.#byUrl.get(url);
    if (!found || found.tracker.askedAt === undefined) return;
    const { tracker, tier } = found;
    tracker.askedAt = undefined;
    if (this.#state !== "running") return;
    if (reply.ok) this.#answered(tracker, tier, reply, now);
    else this.#failed(tracker, tier, now);
  }

  /** The last missing piece of the whole content has arrived: a tracker of each tier is told once (BEP 3), and again
   * only where it did not answer. */
  completed(): void {
    for (const tier of this.#tiers) {
      const first = tier.trackers.find((tracker) => tracker.knowsUs);
      if (!first) continue;
      first.owesCompleted = true;
    }
  }

  /** From now on `due` only says goodbye, once, to the trackers that know us. */
  stop(): void {
    if (this.#state === "running") this.#state = "stopping";
  }

  /** When `due` is to be called next; undefined: never. */
  nextWake(now: Instant): Instant | undefined {
    if (this.#state === "stopped") return undefined;
    if (this.#state === "stopping") return now;
    let next: Instant | undefined;
    for (const tier of this.#tiers) {
      const asked = tier.trackers.find((tracker) => tracker.askedAt !== undefined)?.askedAt;
      next = earliest(next, asked === undefined ? (this.#dueAt(tier) ?? now) : after(asked, LOST_MS));
    }
    return next;
  }

  #dueAt(tier: Tier): Instant | undefined {
    const owing = tier.trackers.find((tracker) => tracker.owesCompleted);
    const usual = this.#usuallyDueAt(tier);
    // What failed rests as usual before it is told again.
    return owing === undefined ? usual : owing.retryAt && earliest(owing.retryAt, usual);
  }

  #usuallyDueAt(tier: Tier): Instant | undefined {
    if (this.#peers === 0 && tier.starvingAt !== undefined) return tier.starvingAt;
    if (this.#peers < FEW_PEERS && tier.hungryAt !== undefined) return tier.hungryAt;
    return tier.nextAt;
  }

  #answered(tracker: Tracker, tier: Tier, reply: AnnounceReply & { ok: true }, now: Instant): void {
    tracker.knowsUs = true;
    tracker.failures = 0;
    tracker.retryAt = undefined;
    tracker.saysCompleted = false;
    if (reply.trackerId) tracker.trackerId = reply.trackerId;
    tier.trackers.splice(tier.trackers.indexOf(tracker), 1);
    tier.trackers.unshift(tracker);
    const minimum = clampInterval((reply.minIntervalSeconds ?? 0) * 1000);
    const interval = Math.max(clampInterval(reply.intervalSeconds * 1000), minimum);
    const hungry = reply.minIntervalSeconds === undefined ? Math.min(interval, HUNGRY_INTERVAL_MS) : minimum;
    const starving =
      reply.minIntervalSeconds === undefined ? Math.min(interval, STARVING_INTERVAL_MS) : minimum;
    tier.nextAt = after(now, interval);
    tier.hungryAt = after(now, hungry);
    tier.starvingAt = after(now, starving);
  }

  #failed(tracker: Tracker, tier: Tier, now: Instant): void {
    tracker.retryAt = after(now, Math.min(RETRY_MS * 2 ** tracker.failures, MAX_RETRY_MS));
    tracker.failures++;
    tracker.owesCompleted ||= tracker.saysCompleted;
    tracker.saysCompleted = false;
    tier.hungryAt = undefined;
    tier.starvingAt = undefined;
    // The next tracker of the tier at once; when all rest, the first of them that is rested.
    const isAnyReady = tier.trackers.some((each) => each.retryAt === undefined || each.retryAt <= now);
    tier.nextAt = isAnyReady ? undefined : earliestRetry(tier);
  }

  #giveUpLost(tier: Tier, now: Instant): void {
    for (const tracker of tier.trackers) {
      if (tracker.askedAt === undefined || now < after(tracker.askedAt, LOST_MS)) continue;
      tracker.askedAt = undefined;
      this.#failed(tracker, tier, now);
      return;
    }
  }

  #goodbyes(status: AnnounceStatus): AnnounceRequest[] {
    this.#state = "stopped";
    const knowing = this.#tiers.flatMap((tier) => tier.trackers).filter((tracker) => tracker.knowsUs);
    return knowing.map((tracker) => this.#request(tracker, "stopped", status));
  }

  #request(tracker: Tracker, event: AnnounceRequest["event"], status: AnnounceStatus): AnnounceRequest {
    if (event === "completed") {
      tracker.owesCompleted = false;
      tracker.saysCompleted = true;
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
      numWant: event === "stopped" ? 0 : status.peers < 2 * FEW_PEERS ? NUM_WANT_HUNGRY : NUM_WANT_FED,
      key: this.#key,
      ...(tracker.trackerId && { trackerId: tracker.trackerId }),
    };
  }
}

function eventFor(tracker: Tracker, status: AnnounceStatus): AnnounceRequest["event"] {
  if (!tracker.knowsUs) return "started";
  if (tracker.owesCompleted) return "completed";
  return status.isPaused ? "paused" : "none";
}

function isRested(tracker: Tracker, now: Instant): boolean {
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
