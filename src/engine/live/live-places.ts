import { addressText, type PeerAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";
import type { CandidateOrigin } from "../../swarm/contract.ts";
import { PEX_HOLEPUNCH, PEX_REACHABLE, type PexPeer } from "../../wire/pex-message.ts";
import { LiveBans } from "./live-bans.ts";
import type { PeerLink } from "./peer-link.ts";

/** An address that did not answer is not told to others, and not called on their word, for so long. */
const UNCALLABLE_MS = 600_000;
/** Addresses of each kind that are remembered; the oldest are forgotten. */
const MAX_REMEMBERED = 500;
/** A machine has an address or two. */
const MAX_OURS = 16;

/** What is known of addresses: who may be called, who may call, who can be told of. */
export class LivePlaces {
  readonly bans = new LiveBans();
  readonly #only: readonly PeerAddress[] | undefined;
  #relays: ReadonlySet<string>;
  readonly #ours = new Set<string>();
  readonly #uncallable = new Map<string, Instant>();
  readonly #origins = new Map<string, CandidateOrigin>();

  /** `only`: whom alone a private source talks to. `relays`: those that the source lists. */
  constructor(only: readonly PeerAddress[] | undefined, relays: readonly PeerAddress[] = []) {
    this.#only = only;
    this.#relays = new Set(relays.map(addressText));
  }

  /** The source lists these relays now; none where it lists none anew. */
  listRelays(relays: readonly PeerAddress[]): void {
    if (relays.length > 0) this.#relays = new Set(relays.map(addressText));
  }

  /** Whether to believe of a peer that it is a relay: whoever is listed, or anybody where none is. */
  isRelay(address: PeerAddress): boolean {
    return this.#relays.size === 0 || this.#relays.has(addressText(address));
  }

  /** How many addresses we were told of, as far as is remembered. */
  get known(): number {
    return this.#origins.size;
  }

  /** Notes who told of addresses; gives back those that may be called. */
  found(addresses: readonly PeerAddress[], origin: CandidateOrigin, now: Instant): PeerAddress[] {
    const callable = addresses.filter((address) => address.port !== 0 && this.mayCall(address, now));
    for (const address of callable) {
      const key = addressText(address);
      if (!this.#origins.has(key)) remember(this.#origins, key, origin);
    }
    // What did not answer a moment ago need not be tried again because somebody else names it.
    return origin === "pex" ? callable.filter((address) => this.isReachable(address, now)) : callable;
  }

  originOf(address: PeerAddress): CandidateOrigin {
    return this.#origins.get(addressText(address)) ?? "pex";
  }

  mayCall(address: PeerAddress, now: Instant): boolean {
    if (this.#only && !this.#only.some((each) => addressText(each) === addressText(address))) return false;
    return !this.#ours.has(addressText(address)) && !this.bans.has(address, now);
  }

  /** Whether somebody at this address may talk to us; its port is any. */
  admits(remote: PeerAddress, now: Instant): boolean {
    if (this.#only && !this.#only.some(({ host }) => host === remote.host)) return false;
    return !this.bans.has(remote, now);
  }

  /** We are there ourselves. */
  isOurs(address: PeerAddress): void {
    if (this.#ours.size < MAX_OURS) this.#ours.add(addressText(address));
  }

  /** Nobody answered there. */
  failed(address: PeerAddress, now: Instant): void {
    remember(this.#uncallable, addressText(address), after(now, UNCALLABLE_MS));
  }

  answered(address: PeerAddress): void {
    this.#uncallable.delete(addressText(address));
  }

  /** Whether others can call it, as far as we know. */
  isReachable(address: PeerAddress, now: Instant): boolean {
    const until = this.#uncallable.get(addressText(address));
    return until === undefined || now >= until;
  }

  /** Whom to tell others of. */
  tellable(links: readonly PeerLink[], now: Instant): PexPeer[] {
    return links.flatMap(({ listenAddress, isIncoming, holepunchMessageId }) => {
      const canPunch = holepunchMessageId !== 0;
      if (!listenAddress || !(canPunch || this.isReachable(listenAddress, now))) return [];
      return [
        { address: listenAddress, flags: (isIncoming ? 0 : PEX_REACHABLE) | (canPunch ? PEX_HOLEPUNCH : 0) },
      ];
    });
  }
}

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_REMEMBERED) map.delete(map.keys().next().value!);
}
