import { addressText, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import type { Sha1 } from "../../base/ids.ts";
import { after, earliest, type Instant } from "../../base/time.ts";
import { decodeStun, encodeStun, type StunMessage } from "./stun.ts";

/** Options and dependencies of an agent. */
export interface IceSetup {
  /** Our user name fragment and password. */
  readonly fragment: string;
  readonly password: string;
  /** Whether this side chooses the pair: it made the offer. */
  readonly isControlling: boolean;
  /** 8 random bytes. */
  readonly tieBreaker: Uint8Array;
  readonly sha1: Sha1;
  /** Returns 12 bytes by which the driver recognizes the response. */
  readonly newTransaction: () => Uint8Array;
  /** Returns false for an address that this connection must not use. */
  readonly mayUse: (address: PeerAddress) => boolean;
}

/** Requests of an agent to its driver. */
export type IceOutput =
  | { readonly kind: "send"; readonly bytes: Uint8Array; readonly to: PeerAddress }
  /** Data goes to this address from now on. */
  | { readonly kind: "selected"; readonly address: PeerAddress }
  | { readonly kind: "failed"; readonly reason: string };

/** Retransmissions of a check: 250 ms, doubled up to 2 s, until the deadline. */
const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;
/** Interval between the first checks of two addresses (RFC 8445 14.2). */
const PACING_MS = 20;
/** From the description of the peer to a selected address. A browser needs a few seconds at most. */
const CONNECT_TIMEOUT_MS = 20_000;
/** Interval and time limit of consent checks (RFC 7675). */
const CONSENT_MS = 5_000;
const CONSENT_TIMEOUT_MS = 30_000;
/** Addresses learned from authenticated checks of the peer. */
const MAX_LEARNED = 8;
/** A peer-reflexive priority (RFC 8445 7.1.1). */
const CHECK_PRIORITY = 110 * 2 ** 24 + 65_535 * 256 + 255;

/** A remote address with the state of its check. There is one local socket, so this is a candidate pair. */
interface Pair {
  readonly address: PeerAddress;
  /** The pending check. */
  transaction: Uint8Array | undefined;
  isNominating: boolean;
  retryAt: Instant | undefined;
  retryMs: number;
  /** A check has succeeded. */
  isValid: boolean;
  /** The controlling peer has selected it. */
  isNominatedByPeer: boolean;
}

/**
 * Finds an address at which the peer responds (ICE, RFC 8445), and checks that it goes on responding (RFC 7675). The agent has one
 * local socket, which is shared with other protocols. Every message is authenticated by the passwords of the two descriptions, so
 * only the described peer can make the agent send to an address that is not in the description.
 */
export class IceAgent {
  readonly #setup: IceSetup;
  #isControlling: boolean;
  #remote: { readonly fragment: string; readonly password: string } | undefined;
  readonly #pairs = new Map<string, Pair>();
  readonly #outputs: IceOutput[] = [];
  #learned = 0;
  #selected: Pair | undefined;
  #deadline: Instant | undefined;
  #consentAt: Instant | undefined;
  #isFailed = false;

  constructor(setup: IceSetup) {
    this.#setup = setup;
    this.#isControlling = setup.isControlling;
  }

  /** The address that data goes to; undefined until one is selected. */
  get selected(): PeerAddress | undefined {
    return this.#selected?.address;
  }

  /** Returns true if the peer has proved that it receives packets at this address. */
  isValid(address: PeerAddress): boolean {
    return this.#pairs.get(addressText(address))?.isValid === true;
  }

  /** Sets the description of the peer, and starts to check its addresses. */
  setRemote(
    remote: { readonly fragment: string; readonly password: string },
    candidates: readonly PeerAddress[],
    now: Instant,
  ): void {
    this.#remote = remote;
    this.#deadline = after(now, CONNECT_TIMEOUT_MS);
    for (const address of candidates) if (this.#setup.mayUse(address)) this.#pairOf(address);
    let at = now;
    for (const pair of this.#pairs.values()) {
      pair.retryAt = at;
      at = after(at, PACING_MS);
    }
    this.wake(now);
  }

  /** Takes a STUN message. Throws `DecodeError` if it is malformed or not authentic. */
  received(bytes: Uint8Array, from: PeerAddress, now: Instant): void {
    const message = decodeStun(bytes, (each) => this.#passwordOf(each), this.#setup.sha1);
    if (message.kind === "request") this.#requested(message, from, now);
    else this.#responded(message, from, now);
  }

  /** Sends checks that are due. */
  wake(now: Instant): void {
    if (this.#isFailed) return;
    if (this.#deadline !== undefined && now >= this.#deadline) {
      this.#isFailed = true;
      const reason = this.#selected ? "the peer no longer responds" : "no address of the peer responds";
      this.#outputs.push({ kind: "failed", reason });
      return;
    }
    if (this.#selected && this.#consentAt !== undefined && now >= this.#consentAt) {
      this.#consentAt = after(now, CONSENT_MS);
      this.#selected.transaction = undefined;
      this.#check(this.#selected, now);
      this.#selected.retryAt = undefined;
    }
    for (const pair of this.#pairs.values())
      if (pair.retryAt !== undefined && pair.retryAt <= now) this.#check(pair, now);
  }

  nextWake(): Instant | undefined {
    if (this.#isFailed) return undefined;
    let next = earliest(this.#deadline, this.#consentAt);
    for (const { retryAt } of this.#pairs.values()) next = earliest(next, retryAt);
    return next;
  }

  poll(): IceOutput | undefined {
    return this.#outputs.shift();
  }

  #passwordOf({ kind, username, transaction }: StunMessage): string | undefined {
    if (kind === "request")
      return username?.startsWith(`${this.#setup.fragment}:`) ? this.#setup.password : undefined;
    return this.#pairWith(transaction) && this.#remote?.password;
  }

  #requested(message: StunMessage, from: PeerAddress, now: Instant): void {
    const { transaction, role } = message;
    if (!this.#setup.mayUse(from)) return;
    if (role?.isControlling === this.#isControlling) {
      const isOursLarger = compareBytes(this.#setup.tieBreaker, role.tieBreaker) >= 0;
      // RFC 8445 7.3.1.1: the larger tie-breaker controls.
      if (isOursLarger === this.#isControlling) {
        this.#reply({ kind: "error", transaction, errorCode: 487 }, from);
        return;
      }
      this.#isControlling = !this.#isControlling;
    }
    const isKnown = this.#pairs.has(addressText(from));
    if (!isKnown && ++this.#learned > MAX_LEARNED) return;
    this.#reply({ kind: "success", transaction, mapped: from }, from);
    const pair = this.#pairOf(from);
    if (message.isNominated && !this.#isControlling) {
      pair.isNominatedByPeer = true;
      if (pair.isValid) this.#select(pair, now);
    }
    // A triggered check (RFC 8445 7.3.1.4).
    if (this.#remote && !pair.isValid && pair.retryMs > FIRST_RETRY_MS) pair.retryMs = FIRST_RETRY_MS;
    if (this.#remote && !pair.isValid) this.#check(pair, now);
  }

  #responded(message: StunMessage, from: PeerAddress, now: Instant): void {
    const pair = this.#pairWith(message.transaction);
    // A response from another address means a symmetric NAT in between, which does not work (RFC 8445 7.2.5.2.1).
    if (!pair || addressText(pair.address) !== addressText(from)) return;
    const wasNominating = pair.isNominating;
    pair.transaction = undefined;
    pair.retryAt = undefined;
    pair.isNominating = false;
    if (message.kind === "error") {
      if (message.errorCode !== 487 || this.#selected) return;
      this.#isControlling = !this.#isControlling;
      pair.retryAt = after(now, PACING_MS);
      return;
    }
    pair.isValid = true;
    if (pair === this.#selected) this.#deadline = after(now, CONSENT_TIMEOUT_MS);
    else if (this.#isControlling && wasNominating) this.#select(pair, now);
    else if (this.#isControlling && !this.#isNominating()) {
      pair.isNominating = true;
      pair.retryMs = FIRST_RETRY_MS;
      this.#check(pair, now);
    } else if (!this.#isControlling && pair.isNominatedByPeer) this.#select(pair, now);
  }

  #isNominating(): boolean {
    return this.#selected !== undefined || [...this.#pairs.values()].some((pair) => pair.isNominating);
  }

  #select(pair: Pair, now: Instant): void {
    if (this.#selected === pair) return;
    this.#selected = pair;
    this.#deadline = after(now, CONSENT_TIMEOUT_MS);
    this.#consentAt = after(now, CONSENT_MS);
    for (const each of this.#pairs.values()) each.retryAt = undefined;
    this.#outputs.push({ kind: "selected", address: pair.address });
  }

  /** Sends a check, or repeats the pending one. */
  #check(pair: Pair, now: Instant): void {
    const { fragment, tieBreaker, sha1, newTransaction } = this.#setup;
    if (!this.#remote) return;
    pair.transaction ??= newTransaction();
    pair.retryAt = after(now, pair.retryMs);
    pair.retryMs = Math.min(2 * pair.retryMs, MAX_RETRY_MS);
    const request: StunMessage = {
      kind: "request",
      transaction: pair.transaction,
      username: `${this.#remote.fragment}:${fragment}`,
      priority: CHECK_PRIORITY,
      role: { isControlling: this.#isControlling, tieBreaker },
      ...(pair.isNominating && this.#isControlling && { isNominated: true }),
    };
    const bytes = encodeStun(request, this.#remote.password, sha1);
    this.#outputs.push({ kind: "send", bytes, to: pair.address });
  }

  #reply(message: StunMessage, to: PeerAddress): void {
    const bytes = encodeStun(message, this.#setup.password, this.#setup.sha1);
    this.#outputs.push({ kind: "send", bytes, to });
  }

  #pairWith(transaction: Uint8Array): Pair | undefined {
    for (const pair of this.#pairs.values())
      if (pair.transaction && equalBytes(pair.transaction, transaction)) return pair;
    return undefined;
  }

  #pairOf(address: PeerAddress): Pair {
    const key = addressText(address);
    const pair = this.#pairs.get(key) ?? {
      address,
      transaction: undefined,
      isNominating: false,
      retryAt: undefined,
      retryMs: FIRST_RETRY_MS,
      isValid: false,
      isNominatedByPeer: false,
    };
    this.#pairs.set(key, pair);
    return pair;
  }
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
