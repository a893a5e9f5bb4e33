import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { householdOf } from "../../base/network.ts";
import { type Random, shuffle } from "../../base/random.ts";
import type { Instant } from "../../base/time.ts";
import type { ScrapeCounts } from "../../wire/tracker/announce.ts";
import type { TrackerServerAnnounce } from "../../wire/tracker/server.ts";
import {
  decodeWsRequest,
  encodeWsAnnounceResponse,
  encodeWsFailure,
  encodeWsScrapeResponse,
  encodeWsSignal,
  type Offer,
} from "../../wire/tracker/server-ws.ts";
import type { Refusal, Tracker } from "./tracker.ts";
import type { TrackerClient } from "./visibility.ts";

/** Requests of the relay to its driver: send a message on a connection, or close it. */
type RelayOutput =
  | { readonly kind: "send"; readonly to: number; readonly text: string }
  | { readonly kind: "close"; readonly to: number };

/** Each costs a socket and some KiB; the HTTP server has a lower limit of its own. */
const MAX_CONNECTIONS = 1000;
/** A page opens one connection for all its swarms; several users may share an address. */
const MAX_HOUSEHOLD_CONNECTIONS = 20;
/** Swarms of one connection. */
const MAX_SWARMS_EACH = 100;
/** Malformed messages before a connection is closed. */
const MAX_FAULTS = 10;
/** Announce interval: the server closes sockets that are silent for three minutes. */
const INTERVAL_SECONDS = 120;

interface Connection {
  readonly id: number;
  readonly client: TrackerClient;
  /** Its peer id in each swarm. */
  readonly swarms: Map<Infohash, string>;
  faults: number;
}

interface Member {
  readonly connection: Connection;
  isSeed: boolean;
}

/**
 * A tracker for WebRTC peers (WebTorrent): relays their offers to other peers of the swarm, and the answers back.
 * Clients without offers receive addresses, as from any other tracker.
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

  /** Number of open connections. */
  get size(): number {
    return this.#connections.size;
  }

  /** Registers a new connection; returns false if it must be closed at once. `id` has not been used before. */
  opened(id: number, client: TrackerClient): boolean {
    const household = householdOf(client.host);
    const count = this.#households.get(household) ?? 0;
    if (this.#connections.size >= MAX_CONNECTIONS || count >= MAX_HOUSEHOLD_CONNECTIONS) return false;
    this.#households.set(household, count + 1);
    this.#connections.set(id, { id, client, swarms: new Map(), faults: 0 });
    return true;
  }

  /** Takes a message of a client. */
  received(id: number, text: string, now: Instant): void {
    const connection = this.#connections.get(id);
    if (!connection) return;
    const refusal = this.#tracker.admits(connection.client, now);
    if (refusal) {
      this.#send(id, encodeWsFailure(refusal.refused));
      return;
    }
    try {
      this.#handle(connection, text, now);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      this.#send(id, encodeWsFailure(thrown.message));
      if (++connection.faults >= MAX_FAULTS) this.#outputs.push({ kind: "close", to: id });
    }
  }

  /** The connection has ended. */
  closed(id: number): void {
    const connection = this.#connections.get(id);
    if (!connection) return;
    this.#connections.delete(id);
    for (const infohash of connection.swarms.keys()) this.#leave(connection, infohash);
    const household = householdOf(connection.client.host);
    const count = this.#households.get(household)! - 1;
    if (count === 0) this.#households.delete(household);
    else this.#households.set(household, count);
  }

  /** Returns the next output, or undefined if there is none. */
  poll(): RelayOutput | undefined {
    return this.#outputs.shift();
  }

  #handle(connection: Connection, text: string, now: Instant): void {
    const request = decodeWsRequest(text);
    if (request.kind === "scrape") {
      const counts = request.infohashes.map((each) => [each, this.#counts(each, now)] as const);
      this.#send(connection.id, encodeWsScrapeResponse(counts));
    } else if (request.kind === "announce") {
      const { peerId, announce, offers } = request;
      this.#announce(connection, peerId, announce, offers, now);
    } else {
      const { infohash, peerId, toPeerId, answer } = request;
      const isMember = connection.swarms.get(infohash) === peerId;
      const to = isMember ? this.#swarms.get(infohash)?.get(toPeerId) : undefined;
      // The peer that made the offer may have left.
      if (to) this.#send(to.connection.id, encodeWsSignal(infohash, peerId, answer));
    }
  }

  #announce(
    connection: Connection,
    peerId: string,
    announce: TrackerServerAnnounce,
    given: readonly Offer[] | undefined,
    now: Instant,
  ): void {
    const { infohash, event } = announce;
    const offers = given ?? [];
    const response = this.#trackerResponse(announce, connection.client, offers, now);
    const problem =
      "refused" in response
        ? response.refused
        : this.#join(connection, peerId, announce, given !== undefined);
    if ("refused" in response || problem !== undefined) {
      this.#send(connection.id, encodeWsFailure(problem!, infohash));
      return;
    }
    const counts = this.#counts(infohash, now);
    this.#send(connection.id, encodeWsAnnounceResponse(infohash, INTERVAL_SECONDS, counts, response.peers));
    if (event === "stopped") return;
    const others = [...(this.#swarms.get(infohash) ?? [])]
      .map(([, member]) => member.connection)
      .filter((each) => each !== connection);
    for (const [i, to] of shuffle(others, this.#random).slice(0, offers.length).entries())
      this.#send(to.id, encodeWsSignal(infohash, peerId, offers[i]!));
  }

  /** The response of the underlying tracker, without peers for clients that can connect by WebRTC only. */
  #trackerResponse(
    announce: TrackerServerAnnounce,
    client: TrackerClient,
    offers: readonly Offer[],
    now: Instant,
  ): ReturnType<Tracker["announce"]> | Refusal {
    const numWant = offers.length > 0 && announce.port === 0 ? 0 : announce.numWant;
    return this.#tracker.announce({ ...announce, numWant }, client, now);
  }

  /** Adds a peer to a swarm, or removes it; returns the reason if it is refused. */
  #join(
    connection: Connection,
    peerId: string,
    announce: TrackerServerAnnounce,
    hasOffers: boolean,
  ): string | undefined {
    const { infohash, event, isSeed } = announce;
    const known = connection.swarms.get(infohash);
    if (known !== undefined && (event === "stopped" || known !== peerId)) this.#leave(connection, infohash);
    // A peer with a listening port is returned as an address; it cannot use offers unless it makes some, too.
    if (event === "stopped" || (announce.port > 0 && !hasOffers)) return undefined;
    const swarm = this.#swarms.get(infohash) ?? new Map<string, Member>();
    const member = swarm.get(peerId);
    // Otherwise a client could receive answers meant for another peer.
    if (member && member.connection !== connection) return "peer_id is in use by another connection";
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

  /** Counts the peers of the underlying tracker and of the relay. */
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
