import type { PeerAddress } from "../../base/address.ts";
import { DecodeError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { Machine } from "../../base/machine.ts";
import type { Random } from "../../base/random.ts";
import { TokenBucket } from "../../base/rate.ts";
import { after, earliest, type Instant, instant } from "../../base/time.ts";
import { decodeLsdAnnounce, type LsdAnnounce, MAX_LSD_INFOHASHES } from "../../wire/lsd.ts";
import { Neighbours } from "./neighbours.ts";

/** Events that a driver passes to local discovery. */
type DiscoveryInput =
  /** Peers can connect at this port from now on; 0: no longer. Nothing is announced without a port. */
  | { readonly kind: "port"; readonly port: number }
  /** This engine joins a swarm, to announce itself or only to find peers. Each `join` is ended by a `leave` of the
   * same kind. */
  | { readonly kind: "join" | "leave"; readonly infohash: Infohash; readonly announces: boolean }
  /** A network interface was added: announces everything again. */
  | { readonly kind: "network" }
  /** A datagram from the local network; the caller has checked its source. */
  | { readonly kind: "datagram"; readonly bytes: Uint8Array; readonly host: string };

/** Requests of local discovery to its driver. */
export type DiscoveryOutput =
  /** Send on every network, as one datagram each. */
  | { readonly kind: "announce"; readonly announce: LsdAnnounce }
  | { readonly kind: "found"; readonly infohash: Infohash; readonly addresses: readonly PeerAddress[] };

/** Announce interval of a swarm (BEP 14). */
const INTERVAL_MS = 300_000;
/** Multicast is unacknowledged, and Wi-Fi loses many packets: the first announce is repeated after this time. */
const REPEAT_MS = 10_000;
/** Maximum delay before a new neighbour is answered, randomized because all machines answer it. */
const ANSWER_MS = 1_500;
/** Minimum time between two announces of a swarm in answer to neighbours. */
const ANSWER_GAP_MS = 20_000;
/** Intervals vary by up to a tenth, so that the machines of a network are not synchronized. */
const JITTER = 0.1;
/** Swarms due within this time after another one share its datagram. */
const GATHER_MS = 60_000;
/** Delay of the first announce, so that swarms joined together share a datagram. */
const SETTLE_MS = 50;
/** Minimum time between two datagrams. */
const SPACING_MS = 500;
/** BEP 14 asks for one announce a minute, but swarms joined in a row should not wait for minutes: a burst of eight,
 * then one every ten seconds. */
const BURST = 8;
const PER_SECOND = 0.1;
/** Datagrams processed per minute of one sender, which sends eight in a burst and six a minute per engine, and of all
 * senders. */
const MAX_DATAGRAMS_PER_HOST = 60;
const MAX_DATAGRAMS = 1_000;
const DATAGRAM_WINDOW_MS = 60_000;
interface Membership {
  looking: number;
  announcing: number;
  /** When to announce; undefined without an announcing member. */
  dueAt: Instant | undefined;
  announcedAt: Instant | undefined;
  /** The next announce is followed by a repetition. */
  mustRepeat: boolean;
}

/** Options and dependencies of local discovery. */
interface LocalDiscoverySetup {
  readonly random: Random;
  /** Identifies this engine's own announces (BEP 14). */
  readonly cookie: string;
}

/** Finds peers in the local networks, and announces this engine to them (BEP 14). */
export class LocalDiscovery implements Machine<DiscoveryInput, DiscoveryOutput> {
  readonly #setup: LocalDiscoverySetup;
  readonly #swarms = new Map<Infohash, Membership>();
  readonly #neighbours = new Neighbours();
  readonly #limit = new DatagramLimit();
  readonly #budget = new TokenBucket(PER_SECOND, BURST);
  readonly #outputs: DiscoveryOutput[] = [];
  #port = 0;
  /** Nothing is sent before this time. */
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
      mustRepeat: false,
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
    swarm.mustRepeat = true;
  }

  /** Announces all due swarms, longest due first, and those due soon, as far as they fit into one datagram. */
  #announce(now: Instant): void {
    const due = [...this.#swarms]
      .filter(([, swarm]) => isIncluded(swarm, now))
      .sort(([, a], [, b]) => a.dueAt! - b.dueAt!)
      .slice(0, MAX_LSD_INFOHASHES);
    for (const [, swarm] of due) {
      swarm.announcedAt = now;
      swarm.dueAt = after(now, this.#jittered(swarm.mustRepeat ? REPEAT_MS : INTERVAL_MS));
      swarm.mustRepeat = false;
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
      // Other protocols may use the same multicast group.
      return;
    }
    if (announce.cookie === this.#setup.cookie) return;
    const address = { host, port: announce.port };
    for (const infohash of announce.infohashes) {
      const isNew = this.#neighbours.announced(infohash, address, now);
      const swarm = this.#swarms.get(infohash);
      if (!swarm) continue;
      this.#outputs.push({ kind: "found", infohash, addresses: [address] });
      if (isNew) this.#answer(swarm, now);
    }
  }

  /** Announces the swarm soon, for a new neighbour. */
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

  #jittered(ms: number): number {
    return ms * (1 + JITTER * (2 * this.#setup.random() - 1));
  }
}

/** Whether a swarm is part of an announce at `now`. A recent announce is not repeated early: both might be lost together. */
function isIncluded({ dueAt, announcedAt }: Membership, now: Instant): boolean {
  if (dueAt === undefined || dueAt <= now) return dueAt !== undefined;
  const isRecent = announcedAt !== undefined && now - announcedAt < GATHER_MS;
  return !isRecent && dueAt <= after(now, GATHER_MS);
}

/** Limits the datagrams processed per minute, by sender and in total. */
class DatagramLimit {
  readonly #perHost = new Map<string, number>();
  #count = 0;
  #since: Instant | undefined;

  /** Whether another datagram from `host` is processed. */
  take(host: string, now: Instant): boolean {
    if (this.#since === undefined || now - this.#since >= DATAGRAM_WINDOW_MS) {
      this.#since = now;
      this.#count = 0;
      this.#perHost.clear();
    }
    const ofHost = this.#perHost.get(host) ?? 0;
    if (this.#count >= MAX_DATAGRAMS || ofHost >= MAX_DATAGRAMS_PER_HOST) return false;
    this.#count++;
    this.#perHost.set(host, ofHost + 1);
    return true;
  }
}
