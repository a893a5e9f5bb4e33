import { addressText, familyOf, type PeerAddress } from "../../base/address.ts";
import { HouseholdLimit } from "../../base/household-limit.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { ScrapeCounts } from "../../wire/tracker/announce.ts";
import type { TrackerServerAnnounce, TrackerServerResponse } from "../../wire/tracker/server.ts";
import { PeerTable } from "./peer-table.ts";
import { canBeListed, canSee, reachOf, type TrackerClient } from "./visibility.ts";

/** Options and dependencies of a tracker. */
interface TrackerSetup {
  /** Whether the tracker serves this content. */
  readonly isTracked: (infohash: Infohash) => boolean;
  /** The addresses at which this engine is a peer of the swarm, as the client can reach them; empty if it is not. */
  readonly ownAddresses: (infohash: Infohash, client: TrackerClient) => readonly PeerAddress[];
  readonly random: Random;
}

/** Why a request is refused, and after how many minutes it may be repeated. */
export interface Refusal {
  readonly refused: string;
  readonly retryMinutes: number | "never";
}

/** Half the interval of large trackers, because live streams change quickly. A peer expires after two and a half
 * intervals, which allows for one lost announce. */
const INTERVAL_SECONDS = 600;
const MIN_INTERVAL_SECONDS = 60;
const LIFE_MS = 2.5 * INTERVAL_SECONDS * 1000;
/** Default number of returned peers (BEP 3), and its limit: more than any client connects to. */
const DEFAULT_PEERS = 50;
const MAX_RETURNED_PEERS = 200;
/** Request rate of a household: a client with hundreds of files announces all of them when it starts. Only a botnet has more
 * households. */
const REQUESTS = { perSecond: 5, burst: 200, maxHouseholds: 10_000 };

const UNTRACKED: Refusal = { refused: "not tracked here", retryMinutes: "never" };
const TOO_MANY: Refusal = { refused: "too many requests", retryMinutes: 1 };

/**
 * A tracker (BEP 3): a client that announces a swarm receives other peers of it, and is returned to them, at the source address
 * of its requests. Addresses that clients report for themselves are ignored, because they could be forged.
 */
export class Tracker {
  readonly #setup: TrackerSetup;
  readonly #peers = new PeerTable(LIFE_MS);
  readonly #requests = new HouseholdLimit(REQUESTS);

  constructor(setup: TrackerSetup) {
    this.#setup = setup;
  }

  /** Charges a request to the client; returns a refusal if it is over its limit. */
  admits(client: TrackerClient, now: Instant): Refusal | undefined {
    return this.#requests.take(client.host, now) ? undefined : TOO_MANY;
  }

  /** Takes an announce of an admitted client; returns peers of both IP versions, or only of `family`. */
  announce(
    request: TrackerServerAnnounce,
    client: TrackerClient,
    now: Instant,
    family?: 4 | 6,
  ): TrackerServerResponse | Refusal {
    const { infohash, port, isSeed, event, numWant = DEFAULT_PEERS } = request;
    if (!this.#setup.isTracked(infohash)) return UNTRACKED;
    const self = { host: client.host, port };
    if (event === "stopped") this.#peers.remove(infohash, self);
    else if (port > 0 && canBeListed(client)) {
      const hasCompleted = event === "completed" && !this.#peers.isSeed(infohash, self);
      if (!this.#peers.add(infohash, self, isSeed, now)) return TOO_MANY;
      if (hasCompleted) this.#peers.completed(infohash);
    }
    const wanted = event === "stopped" ? 0 : Math.min(numWant, MAX_RETURNED_PEERS);
    return {
      intervalSeconds: INTERVAL_SECONDS,
      minIntervalSeconds: MIN_INTERVAL_SECONDS,
      counts: this.#peers.counts(infohash),
      peers: this.#peersFor(infohash, { self, client, family, wanted }),
    };
  }

  /** Returns the size of a swarm; zero if it is not tracked. */
  counts(infohash: Infohash, now: Instant): ScrapeCounts {
    this.#peers.expire(now);
    return this.#peers.counts(infohash);
  }

  #peersFor(infohash: Infohash, { self, client, family, wanted }: PeerRequest): PeerAddress[] {
    const isOther = (peer: PeerAddress) => peer.host !== self.host || peer.port !== self.port;
    const fits = (peer: PeerAddress) =>
      isOther(peer) &&
      (family === undefined || familyOf(peer.host) === family) &&
      canSee(client, reachOf(peer.host) ?? "machine");
    const ownAddresses = this.#setup.ownAddresses(infohash, client);
    // A client at one of this engine's own addresses is the engine itself.
    const own = ownAddresses.every(isOther) ? ownAddresses.filter(fits) : [];
    const others = this.#peers.sample(infohash, wanted, fits, this.#setup.random);
    const returned = new Map([...own, ...others].map((peer) => [addressText(peer), peer]));
    return [...returned.values()].slice(0, wanted);
  }
}

interface PeerRequest {
  readonly self: PeerAddress;
  readonly client: TrackerClient;
  readonly family: 4 | 6 | undefined;
  readonly wanted: number;
}
