import { countStripes } from "../../wire/live/message-kind.ts";
import type { SubscribeMessage } from "../../wire/live/subscription.ts";
import { LEAF_SHARE } from "./limits.ts";
import type { LiveAbout } from "./messages.ts";
import type { LivePeer } from "./peer.ts";

/** A peer with this number of free slots also forwards stripes other than its home stripe, and may displace
 * a leaf. */
const HELPER_SLOTS = 4;
/** From this rank on, a child may displace and adopt another one. */
export const ADOPTING_RANK = 1.5;
/** A peer that claims upload while no other peer receives anything through it. At the source, it gives its place to any
 * other peer. */
const FREE_RIDER_RANK = -1;
/** An unreachable peer ranks lower, because no peer can be referred to it. */
const UNREACHABLE_PENALTY = 2;
/** An unproved peer counts with this number of slots at most: less than the weakest proved one. */
const UNPROVED_MAX_SLOTS = 4;

/** A child of one stripe. */
export interface Child {
  readonly peer: LivePeer;
  readonly stripe: number;
  readonly since: number;
  /** Older pieces are not sent to it. */
  startSeq: number;
  /** Another child has its place: it is served until then, or until it has found another parent. */
  leavesAt: number | undefined;
}

/** The circumstances that decide whether a newcomer is admitted. */
export interface AdmissionContext {
  readonly about: LiveAbout;
  readonly slots: number;
  readonly used: number;
  /** For a source: the maximum number of children of the stripe. Other peers are limited by their slots
   * only. */
  readonly perStripe: number | undefined;
  /** For a source: displaced children that have not left use the rest of its upload. */
  readonly isOverloaded: boolean;
  readonly stripeRate: number;
  readonly isDesperate: boolean;
  /** The owed backlog and repairs exceed the spare upload. */
  readonly isOverdrawn: boolean;
  /** For a viewer: children of stripes other than its home stripe, which make room for children of the home
   * stripe. */
  readonly guests: () => readonly Child[];
  readonly now: number;
}

/** Whether a child is a displaced free rider, which is served only while the upload is free. */
export function isGivingWay(
  { peer, stripe, leavesAt }: Child,
  { stripeRate, now }: Pick<AdmissionContext, "stripeRate" | "now">,
): boolean {
  return leavesAt !== undefined && rankOf(peer, stripe, stripeRate, now) === FREE_RIDER_RANK;
}

/** Decides whether a peer becomes a child: `free` if there is a slot, `full`, or the child that it
 * displaces and may adopt. */
export function admit(
  children: readonly Child[],
  peer: LivePeer,
  stripe: number,
  room: AdmissionContext,
): "free" | "full" | Child {
  if (room.slots === 0) return "full";
  if (room.used < room.slots && isOpen(children, peer, stripe, room)) return "free";
  // A displaced child and its successor are both served for a while; the reserve of the upload carries only a
  // few.
  const isOverfull =
    room.perStripe === undefined
      ? room.used - room.slots > room.slots / 16
      : (room.isOverloaded ? children : children.filter((child) => !isGivingWay(child, room))).length >
        room.perStripe;
  if (isOverfull) return "full";
  const isHome = room.about.role === "viewer" && room.about.homeStripe === stripe;
  const guest = isHome ? leastGuest(room) : undefined;
  if (guest) return guest;
  // A newcomer that cannot adopt the displaced child would only move the problem, unless that one only takes.
  const rank = rankOf(peer, stripe, room.stripeRate, room.now);
  if (rank < ADOPTING_RANK && (rank === FREE_RIDER_RANK || room.perStripe === undefined)) return "full";
  return displaced(children, stripe, rank < ADOPTING_RANK ? 0 : rank, room) ?? "full";
}

/** Rank of a child: relays, peers that forward this stripe to many, peers that could, peers that cannot
 * upload (0), free riders (-1). */
export function rankOf(peer: LivePeer, stripe: number, stripeRate: number, now: number): number {
  const { about, window, isReachable } = peer;
  if (about.role === "relay") return 100;
  const slots = about.uploadBytesPerSecond / stripeRate;
  // The full claim is believed once a peer was seen to receive the stripe through it.
  const trusted = peer.isUnproved ? Math.min(slots, UNPROVED_MAX_SLOTS) : slots;
  if (slots < 2) return 0;
  if (peer.unproductiveUntil > now) return FREE_RIDER_RANK;
  // No peer can be referred to an unreachable one.
  if (about.homeStripe === stripe)
    return Math.max(ADOPTING_RANK, 2 + Math.log2(trusted) - (isReachable ? 0 : UNREACHABLE_PENALTY));
  return (window?.freeSlots ?? 0) >= HELPER_SLOTS ? ADOPTING_RANK : 1;
}

function isOpen(children: readonly Child[], peer: LivePeer, stripe: number, room: AdmissionContext): boolean {
  if (room.perStripe !== undefined) {
    // The source's last place of a stripe goes to a peer that forwards it; otherwise the tree would end at
    // leaves.
    // It also goes to another network than that of the other children, so that one party cannot hold the stripe.
    const isLeaf = rankOf(peer, stripe, room.stripeRate, room.now) <= 0;
    const isTwin = !peer.isLocal && children.some((child) => child.peer.network === peer.network);
    const most = room.perStripe - (isLeaf || isTwin ? 1 : 0);
    return children.length < most || peer.about.role === "relay";
  }
  if (room.about.role === "relay" || room.about.homeStripe === stripe)
    return !room.isOverdrawn || room.isDesperate;
  return room.isDesperate;
}

function displaced(
  children: readonly Child[],
  stripe: number,
  rank: number,
  room: AdmissionContext,
): Child | undefined {
  const poor = children.filter(({ peer }) => rankOf(peer, stripe, room.stripeRate, room.now) <= 0).length;
  let worst: Child | undefined;
  let worstRank = rank - 1;
  for (const child of children) {
    if (child.leavesAt !== undefined) continue;
    const other = rankOf(child.peer, stripe, room.stripeRate, room.now);
    // Some places are reserved for leaves, but not at the source, whose children feed all peers.
    if (room.perStripe === undefined && other <= 0 && poor <= LEAF_SHARE * children.length) continue;
    if (other > worstRank) continue;
    worstRank = other;
    worst = child;
  }
  return worst;
}

/** The guest that feeds the fewest others. */
function leastGuest({ guests, stripeRate, now }: AdmissionContext): Child | undefined {
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

/** Whether a SUB says that its sender has the chunk. */
export function holds({ stripes, startSeq, have }: SubscribeMessage, seq: number, stripe: number): boolean {
  const offset = seq - startSeq;
  const at = countStripes(stripes & ((1 << stripe) - 1));
  return offset >= 0 && offset < 32 && (((have[at] ?? 0) >>> offset) & 1) === 1;
}

/** How well a peer serves as a candidate for a stripe. */
export function scoreOf(peer: LivePeer, stripe: number): number {
  return (peer.about.homeStripe === stripe ? 1_000 : 0) + (peer.window?.freeSlots ?? 0);
}
