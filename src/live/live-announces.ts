import type { PeerAddress } from "../base/address.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { after, type Instant } from "../base/time.ts";
import { PendingAnnounces, type SwarmAnnouncer } from "../net/pending-announces.ts";
import type { TrackerFigures } from "../protocol/swarm/contract.ts";
import { TrackerClaims } from "../protocol/swarm/tracker-claims.ts";
import { type AnnounceStatus, TrackerList } from "../protocol/swarm/tracker-list.ts";
import type { Clock } from "../runtime/contract.ts";
import type { AnnounceReply, AnnounceRequest } from "../wire/tracker/announce.ts";

/** What the announces of a live stream depend on. */
export interface LiveAnnouncesOptions {
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly listenPort: number;
  readonly trackers: readonly (readonly string[])[];
  readonly announcer: SwarmAnnouncer;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  /** Handles peers returned by a tracker. */
  found(addresses: readonly PeerAddress[]): void;
}

/** Bytes transferred, and the number of peers. */
export type LiveTraffic = Pick<AnnounceStatus, "uploaded" | "downloaded" | "peers">;

/** A request for peers is valid for this long; the swarm repeats it while it needs peers. */
const REQUEST_MS = 15_000;

/** Announces a live stream to its trackers, and obtains peers from them. */
export class LiveAnnounces {
  readonly #options: LiveAnnouncesOptions;
  readonly #list: TrackerList;
  readonly #claims = new TrackerClaims();
  readonly #running: PendingAnnounces;
  #requestedUntil: Instant | undefined;

  constructor(options: LiveAnnouncesOptions) {
    this.#options = options;
    const { infohash, peerId, listenPort, trackers, random } = options;
    this.#list = new TrackerList({ infohash, peerId, listenPort, tiers: trackers, random });
    this.#running = new PendingAnnounces({
      ...options,
      announced: (request, reply) => this.#announced(request, reply),
      scraped: (url, counts) => this.#claims.scraped(url, counts),
    });
  }

  add(tiers: readonly (readonly string[])[]): void {
    this.#list.add(tiers);
  }

  /** Requests more peers: trackers are asked as soon as their interval allows it. */
  requestPeers(now: Instant): void {
    this.#requestedUntil = after(now, REQUEST_MS);
  }

  /** Sends the announces that are due. */
  round(traffic: LiveTraffic, now: Instant): void {
    const needsPeers = this.#requestedUntil !== undefined && now < this.#requestedUntil;
    // A stream is never complete: some trackers return no seeds to a seed.
    const status = { ...traffic, left: 1, isPaused: false, ...(needsPeers && { peers: 0 }) };
    for (const request of this.#list.due(status, now)) this.#running.announce(request);
  }

  figures(): TrackerFigures {
    return this.#claims.figures(this.#list.size);
  }

  /** Sends `stopped`; resolves when that is done, within seconds. */
  async stop(traffic: LiveTraffic): Promise<void> {
    this.#list.stop();
    this.round(traffic, this.#options.clock.now());
    await this.#running.settle();
  }

  #announced({ url, event }: AnnounceRequest, reply: AnnounceReply): void {
    const { clock, found } = this.#options;
    const now = clock.now();
    this.#list.replied(url, reply, now);
    if (this.#claims.replied(url, reply, now) && event !== "stopped") void this.#running.scrape(url);
    if (reply.ok && event !== "stopped") found(reply.peers);
  }
}
