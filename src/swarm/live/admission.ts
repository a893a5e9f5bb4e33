import { OPEN_SHARE } from "./limits.ts";
import type { LiveAbout } from "./messages.ts";
import type { LivePeer } from "./peer.ts";

/** A stripe that is not its home is handed on, too, by one with so much room: it may take the place of one who cannot. */
const HELPFUL_SLOTS = 4;
export const ADOPTING_RANK = 1.5;
const UNREACHABLE_RANK = 2;
/** As if it could feed so many: less than the weakest that is known to hand the stripe on. */
const UNPROVED_SLOTS = 4;

/** A child of one stripe. */
export interface Child {
  readonly peer: LivePeer;
  readonly stripe: number;
  readonly since: number;
  /** Older pieces are not for it. */
  startSeq: number;
  /** Another has its place: it is served until then, or until it has found somebody. */
  leavesAt: number | undefined;
}

/** What decides about a newcomer. */
export interface Room {
  readonly about: LiveAbout;
  readonly slots: number;
  readonly used: number;
  /** The source gives each stripe to so many; others are bound by their slots alone. */
  readonly perStripe: number | undefined;
  readonly stripeRate: number;
  readonly isDesperate: boolean;
  /** More backlog and repairs are owed than the spare upload carries. */
  readonly isOverdrawn: boolean;
  /** Children of other stripes than our home stripe, where we are no source: they make room for those of the home stripe. */
  readonly guests: () => readonly Child[];
  readonly now: number;
}

/** A free slot, none, or the child whose place the newcomer takes (and whom it is to adopt). */
export function admit(
  children: readonly Child[],
  peer: LivePeer,
  stripe: number,
  room: Room,
): "free" | "full" | Child {
  if (room.slots === 0) return "full";
  if (room.used < room.slots && isOpen(children, peer, stripe, room)) return "free";
  // Each displaced child is served besides its heir for a while: a few at once are what the reserve carries.
  const isOverfull =
    room.perStripe === undefined
      ? room.used - room.slots > room.slots / 16
      : children.length > room.perStripe;
  if (isOverfull) return "full";
  const isHome = room.about.role === "viewer" && room.about.homeStripe === stripe;
  const guest = isHome ? leastGuest(room) : undefined;
  if (guest) return guest;
  // A newcomer that cannot take a child with it would only move the trouble.
  const rank = rankOf(peer, stripe, room.stripeRate, room.now);
  if (rank < ADOPTING_RANK) return "full";
  return displaced(children, stripe, rank, room) ?? "full";
}

/** The worth of a child: relays, then those who hand this stripe on to many, those who could, others, who cannot. */
export function rankOf(peer: LivePeer, stripe: number, stripeRate: number, now: number): number {
  const { about, window, isReachable } = peer;
  if (about.role === "relay") return 100;
  const slots = about.uploadBytesPerSecond / stripeRate;
  // More is believed once somebody was seen to get the stripe through it.
  const trusted = peer.isUnproved ? Math.min(slots, UNPROVED_SLOTS) : slots;
  if (slots < 2 || peer.barrenUntil > now) return 0;
  // Nobody can be sent to one that cannot be called: only those whom it called find it.
  if (about.homeStripe === stripe)
    return Math.max(ADOPTING_RANK, 2 + Math.log2(trusted) - (isReachable ? 0 : UNREACHABLE_RANK));
  return (window?.freeSlots ?? 0) >= HELPFUL_SLOTS ? ADOPTING_RANK : 1;
}

function isOpen(children: readonly Child[], peer: LivePeer, stripe: number, room: Room): boolean {
  if (room.perStripe !== undefined) {
    // The source's last place of a stripe is for one who hands it on: a tree of leaves alone ends there.
    const most = room.perStripe - (rankOf(peer, stripe, room.stripeRate, room.now) === 0 ? 1 : 0);
    return children.length < most || peer.about.role === "relay";
  }
  if (room.about.role === "relay" || room.about.homeStripe === stripe)
    return !room.isOverdrawn || room.isDesperate;
  return room.isDesperate;
}

function displaced(children: readonly Child[], stripe: number, rank: number, room: Room): Child | undefined {
  const poor = children.filter(({ peer }) => rankOf(peer, stripe, room.stripeRate, room.now) === 0).length;
  let worst: Child | undefined;
  let worstRank = rank - 1;
  for (const child of children) {
    if (child.leavesAt !== undefined) continue;
    const other = rankOf(child.peer, stripe, room.stripeRate, room.now);
    // Some places are left to those who cannot upload; not at the source, whose places feed everybody.
    if (room.perStripe === undefined && other === 0 && poor <= OPEN_SHARE * children.length) continue;
    if (other > worstRank) continue;
    worstRank = other;
    worst = child;
  }
  return worst;
}

/** The guest who feeds the fewest others. */
function leastGuest({ guests, stripeRate, now }: Room): Child | undefined {
  let least: Child | undefined;
  let leastRank = Number.POSITIVE_INFINITY;
  for (const guest of guests()) {
    if (guest.leavesAt !== undefined) continue;
    const rank = rankOf(guest.peer, guest.stripe, stripeRate, now);
    if (rank >= leastRank) continue;
    leastRank = rank;
    least = guest;
  }
  return least;
}
