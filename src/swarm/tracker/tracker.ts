import { addressText, familyOf, type PeerAddress } from "../../base/address.ts";
import { HouseholdLimit } from "../../base/household-limit.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { ScrapeCounts } from "../../wire/tracker-reply.ts";
import type { AnnounceAnswer, AnnounceQuestion } from "../../wire/tracker-server.ts";
import { PeerBook } from "./peer-book.ts";
import { mayBeListed, maySee, nearnessOf, type TrackerAsker } from "./sight.ts";

/** What a tracker is made of. */
export interface TrackerSetup {
  /** Whether it answers for this content. */
  readonly isTracked: (infohash: Infohash) => boolean;
  /** Where this machine itself is in that swarm, as this asker may call it; nowhere where it is not. */
  readonly ownPlaces: (infohash: Infohash, asker: TrackerAsker) => readonly PeerAddress[];
  readonly random: Random;
}

/** Why a question is not answered, and in how many minutes it may be asked again. */
export interface Refusal {
  readonly refused: string;
  readonly retryMinutes: number | "never";
}

/** Half as long as big trackers say: live streams come and go. Twice as long, and a lost announce more, is remembered. */
const INTERVAL_SECONDS = 600;
const MIN_INTERVAL_SECONDS = 60;
const LIFE_MS = 2.5 * INTERVAL_SECONDS * 1000;
/** Peers that are told where nobody says how many are wanted (BEP 3), and at most: more than anybody connects to. */
const USUAL_PEERS = 50;
const MAX_TOLD_PEERS = 200;
/** How often a household may ask: whoever shares hundreds of files announces all of them at its start. Nobody but a botnet
 * has more households. */
const QUESTIONS = { perSecond: 5, burst: 200, maxHouseholds: 10_000 };

const UNTRACKED: Refusal = { refused: "not tracked here", retryMinutes: "never" };
const TOO_MANY: Refusal = { refused: "too many questions", retryMinutes: 1 };

/**
 * A tracker (BEP 3): who asks for a swarm is told of others in it, and told of to others, at the very address that it asks
 * from. Addresses that askers name for themselves are not taken: they could be anybody's.
 */
export class Tracker {
  readonly #setup: TrackerSetup;
  readonly #book = new PeerBook(LIFE_MS);
  readonly #questions = new HouseholdLimit(QUESTIONS);

  constructor(setup: TrackerSetup) {
    this.#setup = setup;
  }

  /** Whether somebody may ask something now; to be asked once for each question. */
  admits(asker: TrackerAsker, now: Instant): Refusal | undefined {
    return this.#questions.take(asker.host, now) ? undefined : TOO_MANY;
  }

  /** Takes an announce of an admitted asker; peers of both IP versions come back, or of `family` alone. */
  announce(
    question: AnnounceQuestion,
    asker: TrackerAsker,
    now: Instant,
    family?: 4 | 6,
  ): AnnounceAnswer | Refusal {
    const { infohash, port, isSeed, event, numWant = USUAL_PEERS } = question;
    if (!this.#setup.isTracked(infohash)) return UNTRACKED;
    const self = { host: asker.host, port };
    if (event === "stopped") this.#book.remove(infohash, self);
    else if (port > 0 && mayBeListed(asker)) {
      const isNews = event === "completed" && !this.#book.isSeed(infohash, self);
      if (!this.#book.note(infohash, self, isSeed, now)) return TOO_MANY;
      if (isNews) this.#book.completed(infohash);
    }
    const wanted = event === "stopped" ? 0 : Math.min(numWant, MAX_TOLD_PEERS);
    return {
      intervalSeconds: INTERVAL_SECONDS,
      minIntervalSeconds: MIN_INTERVAL_SECONDS,
      counts: this.#book.counts(infohash),
      peers: this.#peersFor(infohash, { self, asker, family, wanted }),
    };
  }

  /** The size of a swarm; of those that are not tracked here, nothing. */
  counts(infohash: Infohash, now: Instant): ScrapeCounts {
    this.#book.expire(now);
    return this.#book.counts(infohash);
  }

  #peersFor(infohash: Infohash, { self, asker, family, wanted }: PeerWish): PeerAddress[] {
    const isOther = (peer: PeerAddress) => peer.host !== self.host || peer.port !== self.port;
    const fits = (peer: PeerAddress) =>
      isOther(peer) &&
      (family === undefined || familyOf(peer.host) === family) &&
      maySee(asker, nearnessOf(peer.host) ?? "machine");
    const places = this.#setup.ownPlaces(infohash, asker);
    // Who asks from one of our own places is us.
    const own = places.every(isOther) ? places.filter(fits) : [];
    const others = this.#book.some(infohash, wanted, fits, this.#setup.random);
    const told = new Map([...own, ...others].map((peer) => [addressText(peer), peer]));
    return [...told.values()].slice(0, wanted);
  }
}

interface PeerWish {
  readonly self: PeerAddress;
  readonly asker: TrackerAsker;
  readonly family: 4 | 6 | undefined;
  readonly wanted: number;
}
