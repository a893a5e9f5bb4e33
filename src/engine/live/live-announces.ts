import type { PeerAddress } from "../../base/address.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { TrackerFigures } from "../../swarm/contract.ts";
import { TrackerClaims } from "../../swarm/tracker-claims.ts";
import { type AnnounceStatus, TrackerList } from "../../swarm/tracker-list.ts";
import type { AnnounceReply, AnnounceRequest } from "../../wire/tracker.ts";
import { type DriverAnnouncer, RunningAnnounces } from "../running-announces.ts";

/** What the announces of a live stream are made of. */
export interface LiveAnnouncesParts {
  readonly infohash: Infohash;
  readonly peerId: Uint8Array;
  readonly listenPort: number;
  readonly trackers: readonly (readonly string[])[];
  readonly announcer: DriverAnnouncer;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  /** Peers that a tracker knows. */
  found(addresses: readonly PeerAddress[]): void;
}

/** What has moved, in bytes, and how many peers there are. */
export type LiveTraffic = Pick<AnnounceStatus, "uploaded" | "downloaded" | "peers">;

/** A wish for more peers holds so long: it is said again while it lasts. */
const WISH_MS = 15_000;

/** Tells trackers of us, and asks them for peers. */
export class LiveAnnounces {
  readonly #parts: LiveAnnouncesParts;
  readonly #list: TrackerList;
  readonly #claims = new TrackerClaims();
  readonly #running: RunningAnnounces;
  #wishedUntil: Instant | undefined;

  constructor(parts: LiveAnnouncesParts) {
    this.#parts = parts;
    const { infohash, peerId, listenPort, trackers, random } = parts;
    this.#list = new TrackerList({ infohash, peerId, listenPort, tiers: trackers, random });
    this.#running = new RunningAnnounces({
      ...parts,
      announced: (request, reply) => this.#announced(request, reply),
      scraped: (url, counts) => this.#claims.scraped(url, counts),
    });
  }

  add(tiers: readonly (readonly string[])[]): void {
    this.#list.add(tiers);
  }

  /** More peers are wanted: trackers are asked as soon as they allow it. */
  wish(now: Instant): void {
    this.#wishedUntil = after(now, WISH_MS);
  }

  /** Announces what is due. */
  round(traffic: LiveTraffic, now: Instant): void {
    const isHungry = this.#wishedUntil !== undefined && now < this.#wishedUntil;
    // A stream is never complete: who counts as a seed is told of no seeds.
    const status = { ...traffic, left: 1, isPaused: false, ...(isHungry && { peers: 0 }) };
    for (const request of this.#list.due(status, now)) this.#running.announce(request);
  }

  figures(): TrackerFigures {
    return this.#claims.figures(this.#list.size);
  }

  /** Says goodbye; resolves when that is done, within seconds. */
  async stop(traffic: LiveTraffic): Promise<void> {
    this.#list.stop();
    this.round(traffic, this.#parts.clock.now());
    await this.#running.settle();
  }

  #announced({ url, event }: AnnounceRequest, reply: AnnounceReply): void {
    const { clock, found } = this.#parts;
    const now = clock.now();
    this.#list.replied(url, reply, now);
    if (this.#claims.replied(url, reply, now) && event !== "stopped") void this.#running.scrape(url);
    if (reply.ok && event !== "stopped") found(reply.peers);
  }
}
