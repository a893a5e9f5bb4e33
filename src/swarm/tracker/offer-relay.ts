import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { householdOf } from "../../base/network.ts";
import { type Random, shuffle } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { ScrapeCounts } from "../../wire/tracker-reply.ts";
import type { AnnounceQuestion } from "../../wire/tracker-server.ts";
import {
  decodeWsQuestion,
  encodeWsAnswer,
  encodeWsRefusal,
  encodeWsRelayed,
  encodeWsScrapeAnswer,
  type Offer,
} from "../../wire/tracker-server-ws.ts";
import type { TrackerAsker } from "./sight.ts";
import type { Refusal, Tracker } from "./tracker.ts";

/** What the relay wants to be done: a message to one connection, or its end. */
export type RelayOutput =
  | { readonly kind: "send"; readonly to: number; readonly text: string }
  | { readonly kind: "close"; readonly to: number };

/** Each costs a socket and some KiB; the interface's own limit of connections is below. */
const MAX_CONNECTIONS = 1000;
/** A page opens one for all that it watches; several people share an address. */
const MAX_HOUSEHOLD_CONNECTIONS = 20;
/** Swarms of one connection. */
const MAX_SWARMS_EACH = 100;
/** Messages that break the format before a connection is ended. */
const MAX_FAULTS = 10;
/** Sockets are silent for less than their server bears (three minutes). */
const INTERVAL_SECONDS = 120;

interface Connection {
  readonly id: number;
  readonly asker: TrackerAsker;
  /** Its peer id in each swarm. */
  readonly swarms: Map<Infohash, string>;
  faults: number;
}

interface Member {
  readonly connection: Connection;
  isSeed: boolean;
}

/**
 * A tracker for peers that only WebRTC connects (WebTorrent): it hands their offers to others of the swarm, and the
 * answers back. Whoever makes no offers is told plain addresses, as by any other tracker.
 */
export class OfferRelay {
  readonly #tracker: Tracker;
  readonly #isTracked: (infohash: Infohash) => boolean;
  readonly #random: Random;
  readonly #connections = new Map<number, Connection>();
  readonly #households = new Map<string, number>();
  /** By peer id. */
  readonly #swarms = new Map<Infohash, Map<string, Member>>();
  readonly #outputs: RelayOutput[] = [];

  constructor(tracker: Tracker, isTracked: (infohash: Infohash) => boolean, random: Random) {
    this.#tracker = tracker;
    this.#isTracked = isTracked;
    this.#random = random;
  }

  /** Connections that are open. */
  get size(): number {
    return this.#connections.size;
  }

  /** A connection stands; it is to be closed at once where false comes back. `id` is new. */
  opened(id: number, asker: TrackerAsker): boolean {
    const household = householdOf(asker.host);
    const count = this.#households.get(household) ?? 0;
    if (this.#connections.size >= MAX_CONNECTIONS || count >= MAX_HOUSEHOLD_CONNECTIONS) return false;
    this.#households.set(household, count + 1);
    this.#connections.set(id, { id, asker, swarms: new Map(), faults: 0 });
    return true;
  }

  /** Takes a message. */
  received(id: number, text: string, now: Instant): void {
    const connection = this.#connections.get(id);
    if (!connection) return;
    const refusal = this.#tracker.admits(connection.asker, now);
    if (refusal) {
      this.#send(id, encodeWsRefusal(refusal.refused));
      return;
    }
    try {
      this.#handle(connection, text, now);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.#send(id, encodeWsRefusal(thrown.message));
      if (++connection.faults >= MAX_FAULTS) this.#outputs.push({ kind: "close", to: id });
    }
  }

  /** A connection is over: nobody is offered to it any more. */
  closed(id: number): void {
    const connection = this.#connections.get(id);
    if (!connection) return;
    this.#connections.delete(id);
    for (const infohash of connection.swarms.keys()) this.#leave(connection, infohash);
    const household = householdOf(connection.asker.host);
    const count = this.#households.get(household)! - 1;
    if (count === 0) this.#households.delete(household);
    else this.#households.set(household, count);
  }

  /** The next thing to do; undefined for nothing now. */
  poll(): RelayOutput | undefined {
    return this.#outputs.shift();
  }

  #handle(connection: Connection, text: string, now: Instant): void {
    const question = decodeWsQuestion(text);
    if (question.kind === "scrape") {
      const counts = question.infohashes.map((each) => [each, this.#counts(each, now)] as const);
      this.#send(connection.id, encodeWsScrapeAnswer(counts));
    } else if (question.kind === "announce") {
      const { peerId, announce, offers } = question;
      this.#announce(connection, peerId, announce, offers, now);
    } else {
      const { infohash, peerId, toPeerId, answer } = question;
      const isMember = connection.swarms.get(infohash) === peerId;
      const to = isMember ? this.#swarms.get(infohash)?.get(toPeerId) : undefined;
      // Who made the offer may have gone.
      if (to) this.#send(to.connection.id, encodeWsRelayed(infohash, peerId, answer));
    }
  }

  #announce(
    connection: Connection,
    peerId: string,
    announce: AnnounceQuestion,
    offers: readonly Offer[],
    now: Instant,
  ): void {
    const { infohash, event } = announce;
    const plain = this.#plainAnswer(announce, connection.asker, offers, now);
    const problem = "refused" in plain ? plain.refused : this.#join(connection, peerId, announce);
    if ("refused" in plain || problem !== undefined) {
      this.#send(connection.id, encodeWsRefusal(problem!, infohash));
      return;
    }
    const counts = this.#counts(infohash, now);
    this.#send(connection.id, encodeWsAnswer(infohash, INTERVAL_SECONDS, counts, plain.peers));
    if (event === "stopped") return;
    const others = [...(this.#swarms.get(infohash) ?? [])]
      .map(([, member]) => member.connection)
      .filter((each) => each !== connection);
    for (const [i, to] of shuffle(others, this.#random).slice(0, offers.length).entries())
      this.#send(to.id, encodeWsRelayed(infohash, peerId, offers[i]!));
  }

  /** What other trackers would answer: no peers to who has offers, since it can reach none of them. */
  #plainAnswer(
    announce: AnnounceQuestion,
    asker: TrackerAsker,
    offers: readonly Offer[],
    now: Instant,
  ): ReturnType<Tracker["announce"]> | Refusal {
    const numWant = offers.length > 0 ? 0 : announce.numWant;
    return this.#tracker.announce({ ...announce, numWant }, asker, now);
  }

  /** Notes a peer of a swarm, or its goodbye; says what is wrong where that cannot be. */
  #join(connection: Connection, peerId: string, announce: AnnounceQuestion): string | undefined {
    const { infohash, event, isSeed } = announce;
    const known = connection.swarms.get(infohash);
    if (known !== undefined && (event === "stopped" || known !== peerId)) this.#leave(connection, infohash);
    // Who listens at a port is told of by that, and can do nothing with an offer.
    if (event === "stopped" || announce.port > 0) return undefined;
    const swarm = this.#swarms.get(infohash) ?? new Map<string, Member>();
    const member = swarm.get(peerId);
    // Else anybody could get the answers that are meant for another.
    if (member && member.connection !== connection) return "that peer_id is somebody else's";
    if (!member && connection.swarms.size >= MAX_SWARMS_EACH) return "too many swarms";
    swarm.set(peerId, { connection, isSeed });
    connection.swarms.set(infohash, peerId);
    this.#swarms.set(infohash, swarm);
    return undefined;
  }

  #leave(connection: Connection, infohash: Infohash): void {
    const swarm = this.#swarms.get(infohash);
    const peerId = connection.swarms.get(infohash);
    connection.swarms.delete(infohash);
    if (!swarm || peerId === undefined) return;
    swarm.delete(peerId);
    if (swarm.size === 0) this.#swarms.delete(infohash);
  }

  /** Those of plain peers, and of those here. */
  #counts(infohash: Infohash, now: Instant): ScrapeCounts {
    const { seeders, leechers, completed } = this.#tracker.counts(infohash, now);
    const members = this.#isTracked(infohash) ? [...(this.#swarms.get(infohash)?.values() ?? [])] : [];
    const seeds = members.filter(({ isSeed }) => isSeed).length;
    return { seeders: seeders + seeds, leechers: leechers + members.length - seeds, completed };
  }

  #send(to: number, text: string): void {
    this.#outputs.push({ kind: "send", to, text });
  }
}
