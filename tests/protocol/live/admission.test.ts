import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { type AdmissionContext, admit, type Child } from "../../../src/protocol/live/admission.ts";
import { LivePeer } from "../../../src/protocol/live/peer.ts";
import { ABOUT, STRIPES } from "./scripted.ts";

const ROOM: AdmissionContext = {
  about: { ...ABOUT, homeStripe: 0 },
  slots: 4,
  used: 4,
  perStripe: undefined,
  isOverloaded: false,
  stripeRate: 1_000,
  isDesperate: false,
  isOverdrawn: false,
  guests: () => [],
  now: 20_000,
};

let made = 0;

/** A peer of a network of its own. */
function peer(uploadBytesPerSecond: number, homeStripe = 0): LivePeer {
  const about = { ...ABOUT, uploadBytesPerSecond, homeStripe };
  const address = { host: `11.0.${made++}.1`, port: 1 };
  return new LivePeer(1, { address, isReachable: true, about, rttMs: 10 }, STRIPES, instant(0));
}

function child(of: LivePeer, since = 0, stripe = 0): Child {
  return { peer: of, stripe, since, startSeq: 0, leavesAt: undefined };
}

test("admit gives the home stripe to any peer while there is room, and other stripes only to desperate peers", () => {
  const room = { ...ROOM, used: 3 };
  assert.equal(admit([], peer(0), 0, room), "free");
  assert.equal(admit([], peer(0), 1, room), "full");
  assert.equal(admit([], peer(0), 1, { ...room, isDesperate: true }), "free");
  assert.equal(admit([], peer(0), 0, { ...room, isOverdrawn: true }), "full");
  assert.equal(admit([], peer(0), 0, { ...room, used: 4 }), "full");
});

test("admit displaces the least useful child for a newcomer that can adopt it, and for no other", () => {
  const children = [child(peer(0)), child(peer(8_000))];
  assert.equal(admit(children, peer(16_000), 0, ROOM), children[0]);
  assert.equal(admit(children, peer(0), 0, ROOM), "full");
  assert.equal(admit([child(peer(16_000))], peer(16_000), 0, ROOM), "full");
});

test("admit displaces a guest of another stripe for a child of the home stripe, whatever its upload", () => {
  const guests = [child(peer(8_000), 0, 3)];
  const room = { ...ROOM, guests: () => guests };
  assert.equal(admit([], peer(0), 0, room), guests[0]);
  assert.equal(admit([], peer(8_000), 2, { ...room, isDesperate: true }), "full");
});

test("admit limits the claim of a peer through which no peer was seen to receive, and displaces an unproductive child", () => {
  const claiming = Object.assign(peer(100_000), { isUnproved: true });
  const weak = child(peer(10_000));
  assert.equal(admit([weak], claiming, 0, ROOM), "full");
  assert.equal(admit([weak], peer(100_000), 0, ROOM), weak);
  const barren = child(Object.assign(peer(100_000), { unproductiveUntil: ROOM.now + 1 }));
  assert.equal(admit([weak, barren], peer(10_000), 0, { ...ROOM, perStripe: 2 }), barren);
});

test("admit gives the source's place of a free rider to any peer but another free rider, also if one is still served", () => {
  const rider = () => Object.assign(peer(100_000), { unproductiveUntil: ROOM.now + 1 });
  const source = { ...ROOM, perStripe: 2 };
  const children = [child(rider()), child(peer(10_000))];
  assert.equal(admit(children, peer(0), 0, source), children[0]);
  assert.equal(admit(children, rider(), 0, source), "full");
  const leaving = { ...child(rider()), leavesAt: ROOM.now };
  assert.equal(admit([...children, leaving], peer(0), 0, source), children[0]);
  assert.equal(admit([...children, leaving], peer(0), 0, { ...source, isOverloaded: true }), "full");
  // A viewer has too few neighbours to judge.
  assert.equal(admit(children, peer(0), 0, ROOM), "full");
});

test("admit displaces the guest that feeds the fewest", () => {
  const guests = [child(peer(8_000, 3), 0, 3), child(peer(0), 0, 2)];
  assert.equal(admit([], peer(0), 0, { ...ROOM, guests: () => guests }), guests[1]);
});

test("admit keeps the source's last place of a stripe for a peer that forwards it", () => {
  const room: AdmissionContext = {
    ...ROOM,
    about: { ...ABOUT, role: "source" },
    perStripe: 2,
    slots: 32,
    used: 1,
  };
  assert.equal(admit([child(peer(0))], peer(0), 3, room), "full");
  assert.equal(admit([child(peer(0))], peer(8_000), 3, room), "free");
});
