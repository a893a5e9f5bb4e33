import { MAX_DEPTH, MAX_PEERS_PER_NETWORK, PROOF_CHUNKS } from "./limits.ts";
import { NO_DEPTH } from "./messages.ts";
import type { LivePeer } from "./peer.ts";
import type { LiveState } from "./state.ts";

/** What one hop costs, from the simulation: half a round trip apart from that. */
const HOP_MS = 80;
/** What asking costs that will likely be refused. */
const FULL_MS = 900;
/** What it costs to ask one who waits for the stripe as we do. */
const STARVING_MS = 2_000;
const OTHER_HOME_MS = 300;
const FULL_HOME_MS = 350;
/** Who can be called leaves those who can be to others, who have nobody else. */
const SCARCE_MS = 150;
/** Equal parents are told apart by chance, so that not all of a crowd ask the same one. */
const CHANCE_MS = 60;

/** Whom not to choose, and how choosy to be. */
export interface ParentWish {
  readonly except?: LivePeer | undefined;
  /** The last piece of the stripe that came: who has no more of it has lost it as we did. */
  readonly lastSeq?: number;
  /** Only parents nearer to the source than this. */
  readonly belowDepth?: number | undefined;
  /** One parent may give more than a quarter of all stripes: better than none at all. */
  readonly isRelaxed?: boolean;
  /** Who failed us may be asked again, where it has ever been of use. */
  readonly isDire?: boolean;
  /** Only those whose home the stripe is, relays, and the source. */
  readonly isTidy?: boolean;
}

/** The parent that would bring a stripe soonest, or undefined where nobody may be asked. */
export function chooseParent(state: LiveState, stripe: number, wish: ParentWish): LivePeer | undefined {
  const { setup, now } = state;
  const { digest } = setup.about;
  let best: LivePeer | undefined;
  let bestMs = Number.POSITIVE_INFINITY;
  let loaded: LivePeer | undefined;
  let eligible = 0;
  for (const peer of state.peers.values()) {
    if (!peer.isGreeted || peer === wish.except || peer.retryAt > now) continue;
    if (peer.avoidUntil > now && !(wish.isDire && peer.usefulChunks > 0)) continue;
    if (peer.isQuiet(now)) continue;
    const depth = peer.depthOf(stripe);
    if (depth === NO_DEPTH || depth >= MAX_DEPTH || depth >= (wish.belowDepth ?? NO_DEPTH)) continue;
    if (peer.paths[stripe]?.ancestors.includes(digest)) continue;
    if (wish.isTidy && !isHome(peer, stripe)) continue;
    // A relay gets everything from the source itself, so that all others can have it from the relay.
    if (setup.about.role === "relay" && peer.about.role === "source") return peer;
    eligible++;
    if (!wish.isRelaxed && isLoaded(state, peer)) {
      loaded = peer;
      continue;
    }
    const placeMs = slotMs(peer, stripe) + starvingMs(peer, stripe, wish) + scarceMs(state, peer);
    const ms = depth * HOP_MS + peer.rttMs / 2 + lagOf(state, peer, stripe) + placeMs;
    const chosenMs = ms + setup.random() * CHANCE_MS;
    if (chosenMs >= bestMs) continue;
    bestMs = chosenMs;
    best = peer;
  }
  // Where there is no choice and none to come, spreading would only be waiting.
  return best ?? (eligible === 1 && state.opening === 0 ? loaded : undefined);
}

/** A quarter of the stripes at most of one that has not proved itself, half of anybody, a quarter of one network. */
function isLoaded(state: LiveState, peer: LivePeer): boolean {
  const { stripes } = state.setup.layout;
  const given = bitCount(peer.parentOf);
  const isProven = peer.usefulChunks >= PROOF_CHUNKS;
  if (given >= (isProven ? stripes / 2 : stripes / 4)) return true;
  // A home is one network, and there is no other to choose.
  if (isProven || peer.isNear) return false;
  let mask = 0;
  let peers = 0;
  for (const other of state.peers.values()) {
    if (other.network !== peer.network) continue;
    mask |= other.parentOf;
    peers++;
  }
  return peers > 1 && peers <= MAX_PEERS_PER_NETWORK * 2 && bitCount(mask) >= stripes / 4;
}

/** How far the peer's stripe is behind the newest piece we know. */
function lagOf(state: LiveState, peer: LivePeer, stripe: number): number {
  const head = state.window.head;
  const behind = head < 0 ? 0 : Math.max(0, head - peer.headOf(stripe) - 2);
  return Math.min(behind, 32) * state.setup.layout.pieceMs;
}

/** Whether it is there to hand on this stripe: relays and the source hand on all. */
export function isHome({ about }: LivePeer, stripe: number): boolean {
  return about.role !== "viewer" || (about.homeStripe === stripe && about.uploadBytesPerSecond > 0);
}

function slotMs(peer: LivePeer, stripe: number): number {
  const isFree = peer.window?.isOpen && peer.window.freeSlots > 0;
  // At home, guests make room.
  if (isHome(peer, stripe)) return isFree ? 0 : FULL_HOME_MS;
  return isFree ? OTHER_HOME_MS : FULL_MS;
}

function scarceMs({ wasCalled }: LiveState, { about, isReachable }: LivePeer): number {
  return wasCalled && isReachable && about.role === "viewer" ? SCARCE_MS : 0;
}

function starvingMs(peer: LivePeer, stripe: number, { lastSeq = -1 }: ParentWish): number {
  return lastSeq >= 0 && peer.about.role !== "source" && peer.headOf(stripe) <= lastSeq ? STARVING_MS : 0;
}

function bitCount(mask: number): number {
  let count = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) count++;
  return count;
}
