import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../../../src/base/time.ts";
import { admit, type Child, type Room } from "../../../src/swarm/live/admission.ts";
import { LivePeer } from "../../../src/swarm/live/peer.ts";
import { ABOUT, STRIPES } from "./scripted.ts";

const ROOM: Room = {
  about: { ...ABOUT, homeStripe: 0 },
  slots: 4,
  used: 4,
  perStripe: undefined,
  stripeRate: 1_000,
  isDesperate: false,
  isOverdrawn: false,
  guests: () => [],
  now: 20_000,
};

function peer(uploadBytesPerSecond: number, homeStripe = 0): LivePeer {
  const about = { ...ABOUT, uploadBytesPerSecond, homeStripe };
  const address = { host: "11.0.0.1", port: 1 };
  return new LivePeer(1, { address, isReachable: true, about, rttMs: 10 }, STRIPES, instant(0));
}

function child(of: LivePeer, since = 0, stripe = 0): Child {
  return { peer: of, stripe, since, startSeq: 0, leavesAt: undefined };
}

test("admit gives the home stripe to anybody while there is room, others to the desperate alone", () => {
  const room = { ...ROOM, used: 3 };
  assert.equal(admit([], peer(0), 0, room), "free");
  assert.equal(admit([], peer(0), 1, room), "full");
  assert.equal(admit([], peer(0), 1, { ...room, isDesperate: true }), "free");
  assert.equal(admit([], peer(0), 0, { ...room, isOverdrawn: true }), "full");
  assert.equal(admit([], peer(0), 0, { ...room, used: 4 }), "full");
});

test("admit displaces the least useful child for one that can adopt it, and never for one that cannot", () => {
  const children = [child(peer(0)), child(peer(8_000))];
  assert.equal(admit(children, peer(16_000), 0, ROOM), children[0]);
  assert.equal(admit(children, peer(0), 0, ROOM), "full");
  assert.equal(admit([child(peer(16_000))], peer(16_000), 0, ROOM), "full");
});

test("admit makes a guest of another stripe go for a child of the home stripe, whatever that one uploads", () => {
  const guests = [child(peer(8_000), 0, 3)];
  const room = { ...ROOM, guests: () => guests };
  assert.equal(admit([], peer(0), 0, room), guests[0]);
  assert.equal(admit([], peer(8_000), 2, { ...room, isDesperate: true }), "full");
});

test("admit believes no claim of whom nobody was seen to get anything through, and gives a barren child's place away", () => {
  const claiming = Object.assign(peer(100_000), { isUnproved: true });
  const weak = child(peer(10_000));
  assert.equal(admit([weak], claiming, 0, ROOM), "full");
  assert.equal(admit([weak], peer(100_000), 0, ROOM), weak);
  const barren = child(Object.assign(peer(100_000), { barrenUntil: ROOM.now + 1 }));
  assert.equal(admit([weak, barren], peer(10_000), 0, { ...ROOM, perStripe: 2 }), barren);
});

test("admit lets the guest go who feeds the fewest", () => {
  const guests = [child(peer(8_000, 3), 0, 3), child(peer(0), 0, 2)];
  assert.equal(admit([], peer(0), 0, { ...ROOM, guests: () => guests }), guests[1]);
});

test("admit keeps the source's last place of a stripe for one who hands it on", () => {
  const room: Room = { ...ROOM, about: { ...ABOUT, role: "source" }, perStripe: 2, slots: 32, used: 1 };
  assert.equal(admit([child(peer(0))], peer(0), 3, room), "full");
  assert.equal(admit([child(peer(0))], peer(8_000), 3, room), "free");
});
