import type { PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Machine } from "../../base/machine.ts";
import type { Random } from "../../base/random.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, earliest, type Instant, instant } from "../../base/time.ts";
import { decodeLsdAnnounce, type LsdAnnounce, MAX_LSD_INFOHASHES } from "../../wire/lsd.ts";
import { HeardLimit } from "./heard-limit.ts";
import { Neighbours } from "./neighbours.ts";

/** What happens around local discovery. */
export type DiscoveryInput =
  /** Peers can call us at this port from now on; 0: no more. Nothing is announced before. */
  | { readonly kind: "port"; readonly port: number }
  /** We are in a swarm, and tell others so or only look. Each is ended by a `leave` of the same kind. */
  | { readonly kind: "join" | "leave"; readonly infohash: Infohash; readonly announces: boolean }
  /** A network that was not there before hears of everything. */
  | { readonly kind: "network" }
  /** A datagram from a neighbour: whoever hands it over has checked that it is one. */
  | { readonly kind: "datagram"; readonly bytes: Uint8Array; readonly host: string };

/** What local discovery wants done. */
export type DiscoveryOutput =
  /** To be told on every network, in one datagram for each. */
  | { readonly kind: "announce"; readonly announce: LsdAnnounce }
  | { readonly kind: "found"; readonly infohash: Infohash; readonly addresses: readonly PeerAddress[] };

/** Every swarm is announced so often (BEP 14). */
const INTERVAL_MS = 300_000;
/** Nobody confirms a multicast, and radio loses many: what is new is said a second time. */
const REPEAT_MS = 10_000;
/** A newcomer is answered so late at most: all who hear it would answer in one moment otherwise. */
const ANSWER_MS = 1_500;
/** Each swarm answers newcomers at most so often. */
const ANSWER_GAP_MS = 20_000;
/** Intervals differ by up to a tenth, so that the machines of a network do not speak together. */
const JITTER = 0.1;
/** Swarms that are due so soon after one that is due go with it: fewer datagrams. */
const GATHER_MS = 60_000;
/** What is joined in one go is told in one go. */
const SETTLE_MS = 50;
/** Between two datagrams. */
const SPACING_MS = 500;
/** BEP 14 wants one announce a minute; who has begun several things in a row shall not wait for minutes: eight at once, then
 * one in ten seconds. */
const BURST = 8;
const PER_SECOND = 0.1;

interface Membership {
  looking: number;
  announcing: number;
  /** When to announce; undefined for who only looks. */
  dueAt: Instant | undefined;
  announcedAt: Instant | undefined;
  /** It has been said once, and shall be said again soon. */
  owesRepeat: boolean;
}

/** What it is made of. */
export interface LocalDiscoverySetup {
  readonly random: Random;
  /** Ours, by which we know our own announces. */
  readonly cookie: string;
}

/** Finds peers in the networks that we are on, and tells them of us (BEP 14). */
export class LocalDiscovery implements Machine<DiscoveryInput, DiscoveryOutput> {
  readonly #setup: LocalDiscoverySetup;
  readonly #swarms = new Map<Infohash, Membership>();
  readonly #neighbours = new Neighbours();
  readonly #limit = new HeardLimit();
  readonly #budget = new TokenBucket(PER_SECOND, BURST);
  readonly #outputs: DiscoveryOutput[] = [];
  #port = 0;
  /** Nothing is sent before. */
  #quietUntil: Instant | undefined;

  constructor(setup: LocalDiscoverySetup) {
    this.#setup = setup;
  }

  handle(input: DiscoveryInput, now: Instant): void {
    switch (input.kind) {
      case "port":
        this.#port = input.port;
        this.#announceAll(now);
        break;
      case "network":
        this.#announceAll(now);
        break;
      case "join":
        this.#join(input.infohash, input.announces, now);
        break;
      case "leave":
        this.#leave(input.infohash, input.announces);
        break;
      case "datagram":
        this.#datagram(input.bytes, input.host, now);
        break;
    }
    this.wake(now);
  }

  wake(now: Instant): void {
    const due = this.#nextDue();
    if (due === undefined || due > now || this.#port === 0) return;
    if (this.#quietUntil !== undefined && now < this.#quietUntil) return;
    if (!this.#budget.take(1, now)) {
      this.#quietUntil = after(now, this.#budget.waitMs(now));
      return;
    }
    this.#quietUntil = after(now, SPACING_MS);
    this.#announce(now);
  }

  poll(): DiscoveryOutput | undefined {
    return this.#outputs.shift();
  }

  nextWake(): Instant | undefined {
    const due = this.#nextDue();
    if (due === undefined || this.#port === 0) return undefined;
    return this.#quietUntil !== undefined && this.#quietUntil > due ? this.#quietUntil : due;
  }

  #join(infohash: Infohash, announces: boolean, now: Instant): void {
    const known = this.#swarms.get(infohash);
    const swarm = known ?? {
      looking: 0,
      announcing: 0,
      dueAt: undefined,
      announcedAt: undefined,
      owesRepeat: false,
    };
    this.#swarms.set(infohash, swarm);
    if (!announces) swarm.looking++;
    else if (++swarm.announcing === 1) this.#announceAnew(swarm, now);
    const addresses = this.#neighbours.of(infohash, now);
    if (addresses.length > 0) this.#outputs.push({ kind: "found", infohash, addresses });
  }

  #leave(infohash: Infohash, announces: boolean): void {
    const swarm = this.#swarms.get(infohash);
    if (!swarm) return;
    if (!announces) swarm.looking--;
    else if (--swarm.announcing === 0) swarm.dueAt = undefined;
    if (swarm.looking + swarm.announcing === 0) this.#swarms.delete(infohash);
  }

  #announceAll(now: Instant): void {
    for (const swarm of this.#swarms.values()) if (swarm.announcing > 0) this.#announceAnew(swarm, now);
  }

  #announceAnew(swarm: Membership, now: Instant): void {
    swarm.dueAt = after(now, SETTLE_MS);
    swarm.owesRepeat = true;
  }

  /** Tells of all that is due, the longest first, and of what soon will be, as far as one datagram holds. */
  #announce(now: Instant): void {
    const due = [...this.#swarms]
      .filter(([, swarm]) => goesNow(swarm, now))
      .sort(([, a], [, b]) => a.dueAt! - b.dueAt!)
      .slice(0, MAX_LSD_INFOHASHES);
    for (const [, swarm] of due) {
      swarm.announcedAt = now;
      swarm.dueAt = after(now, this.#spread(swarm.owesRepeat ? REPEAT_MS : INTERVAL_MS));
      swarm.owesRepeat = false;
    }
    const infohashes = due.map(([infohash]) => infohash);
    const { cookie } = this.#setup;
    this.#outputs.push({ kind: "announce", announce: { port: this.#port, infohashes, cookie } });
  }

  #datagram(bytes: Uint8Array, host: string, now: Instant): void {
    if (!this.#limit.take(host, now)) return;
    let announce: LsdAnnounce;
    try {
      announce = decodeLsdAnnounce(bytes);
    } catch (thrown) {
      if (!(thrown instanceof DecodeError)) throw thrown;
      // Multicast brings what others of the network say in other protocols' ways; it costs them nothing.
      return;
    }
    if (announce.cookie === this.#setup.cookie) return;
    const address = { host, port: announce.port };
    for (const infohash of announce.infohashes) {
      const isNews = this.#neighbours.heard(infohash, address, now);
      const swarm = this.#swarms.get(infohash);
      if (!swarm) continue;
      this.#outputs.push({ kind: "found", infohash, addresses: [address] });
      if (isNews) this.#answer(swarm, now);
    }
  }

  /** A newcomer hears of us soon, and not only when we would announce anyway. */
  #answer(swarm: Membership, now: Instant): void {
    if (swarm.dueAt === undefined) return;
    const soonest = after(now, ANSWER_MS * this.#setup.random());
    const mayAt = swarm.announcedAt === undefined ? soonest : after(swarm.announcedAt, ANSWER_GAP_MS);
    swarm.dueAt = earliest(swarm.dueAt, instant(Math.max(mayAt, soonest)));
  }

  #nextDue(): Instant | undefined {
    let next: Instant | undefined;
    for (const { dueAt } of this.#swarms.values()) next = earliest(next, dueAt);
    return next;
  }

  #spread(ms: number): number {
    return ms * (1 + JITTER * (2 * this.#setup.random() - 1));
  }
}

/** What was said just now is repeated at its own time: with the next datagram it might be lost like that one. */
function goesNow({ dueAt, announcedAt }: Membership, now: Instant): boolean {
  if (dueAt === undefined || dueAt <= now) return dueAt !== undefined;
  const isRecent = announcedAt !== undefined && now - announcedAt < GATHER_MS;
  return !isRecent && dueAt <= after(now, GATHER_MS);
}
