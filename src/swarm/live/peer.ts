import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import type { Instant } from "../../base/time.ts";
import type { StripePath } from "../../wire/live-paths.ts";
import { type LiveWindow, windowHas } from "../../wire/live-window.ts";
import { networkOf } from "../candidates.ts";
import type { LiveConnectionId } from "./contract.ts";
import { QUIET_MS, SELDOM_QUIET_MS, VERIFY_BURST, VERIFY_PER_SECOND } from "./limits.ts";
import { type LiveAbout, NO_DEPTH, type SignedHeader } from "./messages.ts";

/** Pieces of which we remember what a peer was given: more than a WIN tells. */
const GIVEN_PIECES = 64;
/** Stands for a piece's header where others stand for its stripes. */
export const HEADER_SLOT = 16;

/** What we know of one connected peer. */
export class LivePeer {
  readonly connection: LiveConnectionId;
  readonly address: PeerAddress;
  /** The address as a key of maps. */
  readonly key: string;
  /** Whether others can call the address. */
  readonly isReachable: boolean;
  readonly about: LiveAbout;
  readonly openedAt: Instant;
  /** The /24 or /64 it is in. */
  readonly network: string;
  /** On this machine, or in a home: networks of many who know each other. */
  readonly isNear: boolean;
  rttMs: number;
  isGreeted = false;
  /** Was told a head when it came, or since. */
  knowsHead = false;
  /** The newest header it told before we had a head. */
  head: SignedHeader | undefined;
  window: Readonly<LiveWindow> | undefined;
  readonly paths: (StripePath | undefined)[];
  /** When each path was told last. */
  readonly pathsAt: Float64Array;
  /** The stripes that it gives us, or was asked for; those that we give it. */
  parentOf = 0;
  childOf = 0;
  /** Not to be asked as a parent, or for a chunk, before. */
  avoidUntil = 0;
  /** How often it failed as a parent before it gave anything. */
  failures = 0;
  pullAvoidUntil = 0;
  /** When it last sent a chunk that was pulled of it. */
  answeredAt = Number.NEGATIVE_INFINITY;
  /** Refused us, and for how long. */
  retryAt = 0;
  /** Chunks it gave us that were new and on time. */
  usefulChunks = 0;
  /** When it was last told that a stripe is not wanted of it. */
  partedAt = Number.NEGATIVE_INFINITY;
  pulls = 0;
  /** When others were last seen to get through it what we give it, and until when it counts as feeding nobody. */
  provedAt = Number.NEGATIVE_INFINITY;
  barrenUntil = 0;
  /** Nobody was seen to get anything through it, though there are many who could. */
  isUnproved = false;
  /** It told a header of a time that is not yet: the source's clock may have been set, or ours. What follows from that is not its fault. */
  isAhead = false;
  strikes = 0;
  strikesAt: number;
  /** The stripes of which it was not told where we are now. */
  untoldPaths = 0xffff;
  pingedAt = 0;
  heardAt: number;
  verifications = VERIFY_BURST;
  readonly #givenSeq = new Float64Array(GIVEN_PIECES).fill(-1);
  readonly #given = new Int32Array(GIVEN_PIECES);
  readonly #toldSeq = new Float64Array(GIVEN_PIECES).fill(-1);
  /** Told once, and again: a bit for each stripe, and one for the header. */
  readonly #told = new Int32Array(GIVEN_PIECES);
  readonly #toldTwice = new Int32Array(GIVEN_PIECES);

  constructor(
    connection: LiveConnectionId,
    peer: Pick<LivePeer, "address" | "isReachable" | "about" | "rttMs">,
    stripes: number,
    now: Instant,
  ) {
    this.connection = connection;
    this.address = peer.address;
    this.key = addressText(peer.address);
    this.isReachable = peer.isReachable;
    this.about = peer.about;
    this.rttMs = peer.rttMs;
    this.openedAt = now;
    this.heardAt = now;
    this.strikesAt = now;
    this.network = networkOf(peer.address.host);
    this.isNear = addressScope(peer.address.host) !== "global";
    this.pathsAt = new Float64Array(stripes);
    this.paths = new Array<StripePath | undefined>(stripes).fill(undefined);
  }

  /** The source, or a relay: always near the head, and worth being called again soon. */
  get isPillar(): boolean {
    return this.about.role !== "viewer";
  }

  /** Whether it has not been heard for longer than news takes to come. */
  isQuiet(now: number): boolean {
    return now - this.heardAt > ((this.parentOf | this.childOf) !== 0 ? QUIET_MS : SELDOM_QUIET_MS);
  }

  /** Takes what it tells of its places in the trees. */
  tellPaths(paths: readonly StripePath[], now: number): void {
    for (const path of paths) {
      if (path.stripe >= this.paths.length) continue;
      this.paths[path.stripe] = path;
      this.pathsAt[path.stripe] = now;
    }
  }

  /** Whether its last WIN shows the chunk. */
  has(seq: number, stripe: number): boolean {
    return this.window !== undefined && windowHas(this.window, seq, stripe);
  }

  /** The newest piece of which it has this stripe, by its last WIN. */
  headOf(stripe: number): number {
    if (!this.window) return -1;
    const { baseSeq, runs, beyond } = this.window;
    const bits = beyond[stripe]!;
    return baseSeq + runs[stripe]! - 1 + (bits === 0 ? 0 : 33 - Math.clz32(bits));
  }

  depthOf(stripe: number): number {
    return this.about.role === "source" ? 0 : (this.paths[stripe]?.depth ?? NO_DEPTH);
  }

  /** Notes that it is given the chunk; false where it was already. */
  give(seq: number, stripe: number): boolean {
    return this.#mark(seq, 1 << stripe);
  }

  /** Notes that it is given the header; false where it was already. */
  giveHeader(seq: number): boolean {
    return this.#mark(seq, 1 << HEADER_SLOT);
  }

  /** Notes that it has sent us a stripe of a piece, or its header: how often by now, as far as we remember; 3 is any more. */
  tell(seq: number, slot: number): number {
    const at = seq % GIVEN_PIECES;
    if (seq < this.#toldSeq[at]!) return 1;
    if (seq > this.#toldSeq[at]!) {
      this.#toldSeq[at] = seq;
      this.#told[at] = 0;
      this.#toldTwice[at] = 0;
    }
    const bit = 1 << slot;
    const times = (this.#told[at]! & bit) === 0 ? 1 : (this.#toldTwice[at]! & bit) === 0 ? 2 : 3;
    this.#told[at]! |= bit;
    if (times === 2) this.#toldTwice[at]! |= bit;
    return times;
  }

  /** Takes one of the verifications that it may cost us; they come back with time. */
  takeVerification(now: Instant): boolean {
    const { strikesAt } = this;
    this.forgive(now);
    this.verifications = Math.min(
      VERIFY_BURST,
      this.verifications + ((now - strikesAt) * VERIFY_PER_SECOND) / 1_000,
    );
    if (this.verifications < 1) return false;
    this.verifications--;
    return true;
  }

  /** A new epoch: what we know of it is about another life of the source. */
  restarted(): void {
    this.window = undefined;
    this.#givenSeq.fill(-1);
    this.#given.fill(0);
    this.#toldSeq.fill(-1);
  }

  /** One strike a second is forgiven. */
  forgive(now: Instant): void {
    this.strikes = Math.max(0, this.strikes - (now - this.strikesAt) / 1_000);
    this.strikesAt = now;
  }

  #mark(seq: number, bit: number): boolean {
    const at = seq % GIVEN_PIECES;
    if (this.#givenSeq[at] !== seq) {
      if (seq < this.#givenSeq[at]!) return true;
      this.#givenSeq[at] = seq;
      this.#given[at] = 0;
    }
    if ((this.#given[at]! & bit) !== 0) return false;
    this.#given[at]! |= bit;
    return true;
  }
}
