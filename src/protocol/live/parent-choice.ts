import { MAX_DEPTH, MAX_PEERS_PER_NETWORK } from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** Cost of a hop in addition to half a round trip, from the simulation. */
const HOP_MS = 80;
/** Cost of a request that will probably be refused. */
const FULL_MS = 900;
/** Cost of a parent that does not receive the stripe either. */
const STARVING_MS = 2_000;
const OTHER_HOME_MS = 300;
const FULL_HOME_MS = 350;
/** Cost of a reachable parent for a reachable peer: unreachable peers can connect to reachable parents only. */
const REACHABLE_MS = 150;
/** Maximum of a random cost, so that the peers of a crowd do not all ask the same one of several equal parents. */
const CHANCE_MS = 60;

/** Conditions that a parent must meet. */
export interface ParentCriteria {
  readonly except?: LivePeer | undefined;
  /** The last piece of the stripe that arrived: a peer that has no newer piece does not receive the stripe either. */
  readonly lastSeq?: number;
  /** Only parents with fewer hops to the source than this are allowed. */
  readonly belowDepth?: number | undefined;
  /** Parents that already send many stripes to this peer are allowed. */
  readonly allowsLoaded?: boolean;
  /** Peers that failed recently are allowed if they have sent useful chunks before. */
  readonly allowsFailed?: boolean;
  /** Only peers that have proved themselves are allowed. */
  readonly onlyProven?: boolean;
  /** Only the source, relays, and peers with this home stripe are allowed. */
  readonly onlyHome?: boolean;
}

/** Returns the parent that would deliver a stripe earliest, or undefined if no peer can be asked. */
export function chooseParent(
  state: LiveState,
  stripe: number,
  criteria: ParentCriteria,
): LivePeer | undefined {
  const { setup, now } = state;
  const { digest } = setup.about;
  let best: LivePeer | undefined;
  let bestMs = Number.POSITIVE_INFINITY;
  let loaded: LivePeer | undefined;
  let eligible = 0;
  for (const peer of state.peers.values()) {
    if (!peer.hasSentHello || peer === criteria.except || peer.retryAt > now) continue;
    const hasFailed = peer.avoidUntil > now || !peer.isHonest;
    if (hasFailed && !(criteria.allowsFailed && peer.usefulChunks > 0)) continue;
    if (peer.isSilent(now)) continue;
    const depth = peer.depthOf(stripe);
    if (depth === NO_DEPTH || depth >= MAX_DEPTH || depth >= (criteria.belowDepth ?? NO_DEPTH)) continue;
    if (peer.paths[stripe]?.ancestors.includes(digest)) continue;
    if (criteria.onlyProven && !peer.isProven) continue;
    if (criteria.onlyHome && !isHome(peer, stripe)) continue;
    // A relay receives all stripes directly from the source, and forwards them to viewers.
    if (setup.about.role === "relay" && peer.about.role === "source") return peer;
    eligible++;
    if (!criteria.allowsLoaded && isLoaded(state, peer)) {
      loaded = peer;
      continue;
    }
    const placeMs = slotMs(peer, stripe) + starvingMs(peer, stripe, criteria) + reachableMs(state, peer);
    const ms = depth * HOP_MS + peer.rttMs / 2 + lagOf(state, peer, stripe) + placeMs;
    const chosenMs = ms + setup.random() * CHANCE_MS;
    if (chosenMs >= bestMs) continue;
    bestMs = chosenMs;
    best = peer;
  }
  // If there is only one candidate and none is being connected, waiting for others gains nothing.
  return best ?? (eligible === 1 && state.opening === 0 ? loaded : undefined);
}

/** Returns true if the peer already sends its maximum number of stripes: half of them, or a quarter if it has not proved
 * itself. All unproven remote peers of one network together also have the limit of a quarter. */
function isLoaded(state: LiveState, peer: LivePeer): boolean {
  const { stripes } = state.setup.layout;
  const given = bitCount(peer.parentOf);
  const { isProven } = peer;
  if (given >= (isProven ? stripes / 2 : stripes / 4)) return true;
  // All peers of a local network are in one network, so the limit for a network does not apply.
  if (isProven || peer.isLocal) return false;
  let mask = 0;
  let peers = 0;
  for (const other of state.peers.values()) {
    if (other.network !== peer.network) continue;
    mask |= other.parentOf;
    peers++;
  }
  return peers > 1 && peers <= MAX_PEERS_PER_NETWORK * 2 && bitCount(mask) >= stripes / 4;
}

/** Returns how far the peer's stripe is behind the newest known piece, in ms. */
function lagOf(state: LiveState, peer: LivePeer, stripe: number): number {
  const head = state.window.head;
  const behind = head < 0 ? 0 : Math.max(0, head - peer.headOf(stripe) - 2);
  return Math.min(behind, 32) * state.setup.layout.pieceMs;
}

/** Returns true if the peer is expected to forward this stripe. Relays and the source forward all stripes. */
export function isHome({ about }: LivePeer, stripe: number): boolean {
  return about.role !== "viewer" || (about.homeStripe === stripe && about.uploadBytesPerSecond > 0);
}

function slotMs(peer: LivePeer, stripe: number): number {
  const isFree = peer.window?.isOpen && peer.window.freeSlots > 0;
  // If its slots are full, a peer displaces children of other stripes for a child of its home stripe.
  if (isHome(peer, stripe)) return isFree ? 0 : FULL_HOME_MS;
  return isFree ? OTHER_HOME_MS : FULL_MS;
}

function reachableMs({ hasAcceptedPeer }: LiveState, { about, isReachable }: LivePeer): number {
  return hasAcceptedPeer && isReachable && about.role === "viewer" ? REACHABLE_MS : 0;
}

function starvingMs(peer: LivePeer, stripe: number, { lastSeq = -1 }: ParentCriteria): number {
  return lastSeq >= 0 && peer.about.role !== "source" && peer.headOf(stripe) <= lastSeq ? STARVING_MS : 0;
}

function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}
