import type { PeerAddress } from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { TrackerFigures } from "../../swarm/contract.ts";
import { TrackerClaims } from "../../swarm/tracker-claims.ts";
import { type AnnounceStatus, TrackerList } from "../../swarm/tracker-list.ts";
import type { AnnounceReply, AnnounceRequest } from "../../wire/tracker.ts";
import type { DriverAnnouncer } from "../driver.ts";

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
/** Goodbyes may take so long; then the process need not wait for them. */
const GOODBYE_MS = 2_000;

/** Tells trackers of us, and asks them for peers. */
export class LiveAnnounces {
  readonly #parts: LiveAnnouncesParts;
  readonly #list: TrackerList;
  readonly #claims = new TrackerClaims();
  readonly #running = new Set<Promise<unknown>>();
  readonly #giveUp = new AbortController();
  #wishedUntil: Instant | undefined;

  constructor(parts: LiveAnnouncesParts) {
    this.#parts = parts;
    const { infohash, peerId, listenPort, trackers, random } = parts;
    this.#list = new TrackerList({ infohash, peerId, listenPort, tiers: trackers, random });
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
    for (const request of this.#list.due(status, now)) this.#announce(request);
  }

  figures(): TrackerFigures {
    return this.#claims.figures(this.#list.size);
  }

  /** Says goodbye; resolves when that is done, within seconds. */
  async stop(traffic: LiveTraffic): Promise<void> {
    const { clock } = this.#parts;
    this.#list.stop();
    this.round(traffic, clock.now());
    const cancel = clock.at(after(clock.now(), GOODBYE_MS), () => this.#giveUp.abort());
    await Promise.all(this.#running);
    cancel();
  }

  #announce(request: AnnounceRequest): void {
    const { announcer, log } = this.#parts;
    const announce = announcer.announce(request, this.#giveUp.signal).then(
      (reply) => this.#announced(request, reply),
      (error: unknown) => {
        log.warn("announce failed", { reason: messageOf(error) });
        this.#announced(request, { ok: false, reason: messageOf(error) });
      },
    );
    this.#running.add(announce);
    void announce.finally(() => this.#running.delete(announce));
  }

  #announced({ url, event }: AnnounceRequest, reply: AnnounceReply): void {
    const { clock, log, found } = this.#parts;
    const now = clock.now();
    if (!reply.ok) log.debug("tracker gave nothing", { event, reason: reply.reason });
    this.#list.replied(url, reply, now);
    if (this.#claims.replied(url, reply, now) && event !== "stopped") void this.#scrape(url);
    if (reply.ok && event !== "stopped") found(reply.peers);
  }

  async #scrape(url: string): Promise<void> {
    const { announcer, infohash } = this.#parts;
    const counts = await announcer.scrape(url, infohash, this.#giveUp.signal);
    if (counts) this.#claims.scraped(url, counts);
  }
}
