import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerAddress } from "../../../src/base/address.ts";
import { instant } from "../../../src/base/time.ts";
import { Candidates } from "../../../src/protocol/swarm/candidates.ts";
import { MAX_CANDIDATES } from "../../../src/protocol/swarm/limits.ts";
import { seededRandom } from "../../seeded-random.ts";

const at = (ms: number) => instant(ms);
const make = () => new Candidates(seededRandom(1));
const peer = (host: string, port = 6881): PeerAddress => ({ host, port });

function drain(candidates: Candidates, now: number): PeerAddress[] {
  const taken: PeerAddress[] = [];
  for (let next = candidates.next(at(now)); next; next = candidates.next(at(now))) taken.push(next.address);
  return taken;
}

test("Candidates.next: returns each address once while it is opening or connected", () => {
  const candidates = make();
  assert.equal(candidates.add([peer("8.8.8.8"), peer("8.8.8.8"), peer("9.9.9.9")], "tracker", at(0)), 2);
  assert.equal(drain(candidates, 0).length, 2);
  candidates.opened(peer("8.8.8.8"));
  assert.equal(candidates.next(at(1e9)), undefined);
});

test("Candidates.failed: waits 30 s · 2^n, at most an hour, and nextWake returns that time", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8")], "tracker", at(0));
  let now = 0;
  for (const rest of [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]) {
    assert.ok(candidates.next(at(now)), `ready at ${now}`);
    candidates.failed(peer("8.8.8.8"), at(now));
    assert.equal(candidates.next(at(now + rest * 1000 - 1)), undefined);
    assert.equal(candidates.nextWake(), now + rest * 1000);
    now += rest * 1000;
  }
});

test("Candidates.closed: retries a useful peer after 10 s, others later", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8"), peer("9.9.9.9")], "tracker", at(0));
  drain(candidates, 0);
  candidates.closed(peer("8.8.8.8"), at(0), true);
  candidates.closed(peer("9.9.9.9"), at(0), false);
  assert.deepEqual(drain(candidates, 10_000), [peer("8.8.8.8")]);
  assert.deepEqual(drain(candidates, 30_000), [peer("9.9.9.9")]);
});

test("Candidates.next: local peers first, then those of the link and of trackers, then those of PEX", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8")], "pex", at(0));
  candidates.add([peer("9.9.9.9")], "tracker", at(0));
  candidates.add([peer("7.7.7.7")], "magnet", at(0));
  candidates.add([peer("192.168.1.9")], "tracker", at(0));
  const order = drain(candidates, 0).map(({ host }) => host);
  assert.deepEqual(order, ["192.168.1.9", "7.7.7.7", "9.9.9.9", "8.8.8.8"]);
});

test("Candidates.best: connected peers at their listening address, then the others by score, without banned ones", () => {
  const candidates = make();
  candidates.add([peer("9.9.9.9"), peer("6.6.6.6")], "pex", at(0));
  drain(candidates, 0);
  candidates.opened(peer("9.9.9.9"));
  candidates.failed(peer("6.6.6.6"), at(0));
  candidates.accepted(peer("5.5.5.5", 40_000));
  candidates.listensOn(peer("5.5.5.5", 40_000), 7000, at(0));
  candidates.add([peer("8.8.8.8"), peer("4.4.4.4")], "tracker", at(0));
  candidates.ban(peer("4.4.4.4"));
  const best = candidates.best(10, at(0));
  assert.deepEqual(
    best.map(({ address, origin }) => [address.host, address.port, origin]),
    [
      ["5.5.5.5", 7000, "incoming"],
      ["9.9.9.9", 6881, "pex"],
      ["8.8.8.8", 6881, "tracker"],
      ["6.6.6.6", 6881, "pex"],
    ],
  );
  assert.deepEqual(candidates.best(2, at(0)), best.slice(0, 2));
});

test("Candidates.next: an address that has failed comes after one that has not", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8")], "tracker", at(0));
  candidates.next(at(0));
  candidates.failed(peer("8.8.8.8"), at(0));
  candidates.add([peer("9.9.9.9")], "tracker", at(1));
  assert.deepEqual(drain(candidates, 40_000), [peer("9.9.9.9"), peer("8.8.8.8")]);
});

test("Candidates.next: at most two connections of one address, any number on loopback", () => {
  const candidates = make();
  for (let port = 1; port <= 5; port++) candidates.add([peer("8.8.8.8", port)], "tracker", at(0));
  for (let port = 1; port <= 5; port++) candidates.add([peer("127.0.0.1", port)], "tracker", at(0));
  const taken = drain(candidates, 0);
  assert.equal(taken.filter(({ host }) => host === "8.8.8.8").length, 2);
  assert.equal(taken.filter(({ host }) => host === "127.0.0.1").length, 5);
  assert.equal(candidates.accepted(peer("8.8.8.8", 999)), false);
  candidates.closed(taken.find(({ host }) => host === "8.8.8.8")!, at(0), false);
  assert.equal(candidates.accepted(peer("8.8.8.8", 999)), true);
});

for (const [name, host] of [
  ["/24", (i: number) => `8.8.8.${i}`],
  ["/64", (i: number) => `2001:db9::${i}`],
] as const) {
  test(`Candidates.next: beyond five outgoing connections at most two of one ${name}`, () => {
    const candidates = make();
    for (let i = 1; i <= 30; i++) candidates.add([peer(host(i))], "tracker", at(0));
    assert.equal(drain(candidates, 0).length, 6);
    for (let i = 1; i <= 8; i++) candidates.add([peer(`9.9.${i}.1`), peer(`9.9.${i}.2`)], "pex", at(0));
    assert.equal(drain(candidates, 0).length, 16);
  });
}

test("Candidates.add: PEX from outside the local network cannot add addresses inside it", () => {
  const local = [peer("127.0.0.1"), peer("192.168.0.2"), peer("10.1.1.1"), peer("fe80::1"), peer("fd00::1")];
  const candidates = make();
  assert.equal(candidates.add(local, "pex", at(0), peer("8.8.8.8")), 0);
  assert.equal(candidates.add(local, "pex", at(0), peer("192.168.0.7")), 4);
  assert.equal(candidates.add(local, "pex", at(0), peer("127.0.0.1", 9)), 1);
});

test("Candidates.add: ignores addresses that cannot be connected to", () => {
  const hosts = ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1", "not an address"];
  const candidates = make();
  const bad = [...hosts.map((host) => peer(host)), peer("8.8.8.8", 0), peer("8.8.8.8", 65_536)];
  assert.equal(candidates.add(bad, "tracker", at(0)), 0);
  assert.equal(candidates.size, 0);
});

test("Candidates.add: respects its limit, and drops PEX addresses before tracker addresses", () => {
  const candidates = make();
  for (let i = 0; i < 250; i++) candidates.add([peer(`8.1.${i}.1`)], "tracker", at(0));
  for (let batch = 0; batch < 100; batch++) {
    const flood = Array.from({ length: 50 }, (_, i) => peer(`9.${batch}.${i}.1`));
    candidates.add(flood, "pex", at(batch), peer("9.9.9.9"));
  }
  assert.equal(candidates.size, MAX_CANDIDATES);
  let trackers = 0;
  for (let i = 0; i < 250; i++) if (candidates.next(at(200))?.origin === "tracker") trackers++;
  assert.equal(trackers, 250);
});

test("Candidates.ban: bans the port, and the whole address after a second ban", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8", 1), peer("8.8.8.8", 2), peer("8.8.8.8", 3)], "tracker", at(0));
  candidates.ban(peer("8.8.8.8", 1));
  assert.ok(candidates.isBanned(peer("8.8.8.8", 1)));
  assert.ok(!candidates.isBanned(peer("8.8.8.8", 2)));
  assert.equal(candidates.add([peer("8.8.8.8", 1)], "tracker", at(1)), 0);
  candidates.ban(peer("8.8.8.8", 2));
  assert.ok(candidates.isBanned(peer("8.8.8.8", 3)));
  assert.equal(candidates.next(at(1)), undefined);
  assert.equal(candidates.accepted(peer("8.8.8.8", 55_555)), false);
});

test("Candidates.ban: banning the same port twice counts once", () => {
  const candidates = make();
  candidates.ban(peer("8.8.8.8", 1));
  candidates.ban(peer("8.8.8.8", 1));
  assert.ok(!candidates.isBanned(peer("8.8.8.8", 2)));
});

test("Candidates.ban: does not ban other ports on loopback", () => {
  const candidates = make();
  for (let port = 1; port <= 9; port++) candidates.ban(peer("127.0.0.1", port));
  assert.ok(!candidates.isBanned(peer("127.0.0.1", 10)));
});

test("Candidates.ban: a connected address is not returned again after it closes", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8")], "tracker", at(0));
  candidates.next(at(0));
  candidates.opened(peer("8.8.8.8"));
  candidates.ban(peer("8.8.8.8"));
  candidates.closed(peer("8.8.8.8"), at(2), true);
  assert.equal(candidates.next(at(1e8)), undefined);
  assert.equal(candidates.size, 0);
});

test("Candidates.exclude: the engine's own address is never returned again", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8")], "tracker", at(0));
  candidates.next(at(0));
  candidates.exclude(peer("8.8.8.8"));
  candidates.failed(peer("8.8.8.8"), at(0));
  assert.equal(candidates.add([peer("8.8.8.8")], "tracker", at(1)), 0);
  assert.equal(candidates.next(at(1e8)), undefined);
});

test("Candidates.listensOn: an incoming peer is not connected to while connected, and is known after it leaves", () => {
  const candidates = make();
  candidates.accepted(peer("8.8.8.8", 50_000));
  assert.ok(candidates.listensOn(peer("8.8.8.8", 50_000), 6881, at(0)));
  candidates.add([peer("8.8.8.8", 6881)], "tracker", at(1));
  assert.equal(candidates.next(at(2)), undefined);
  candidates.closed(peer("8.8.8.8", 50_000), at(3), true);
  assert.deepEqual(candidates.next(at(20_000))?.address, peer("8.8.8.8", 6881));
});

test("Candidates.ban: banning an incoming peer bans its listening port", () => {
  const candidates = make();
  candidates.accepted(peer("127.0.0.1", 50_000));
  candidates.listensOn(peer("127.0.0.1", 50_000), 6881, at(0));
  candidates.ban(peer("127.0.0.1", 50_000));
  assert.ok(candidates.isBanned(peer("127.0.0.1", 6881)));
});

test("Candidates.closed: after one of two connections to a peer closes, the other still prevents connecting", () => {
  const candidates = make();
  candidates.add([peer("8.8.8.8", 6881)], "tracker", at(0));
  candidates.next(at(0));
  candidates.opened(peer("8.8.8.8", 6881));
  candidates.accepted(peer("8.8.8.8", 50_000));
  candidates.listensOn(peer("8.8.8.8", 50_000), 6881, at(1));
  candidates.closed(peer("8.8.8.8", 6881), at(2), false);
  assert.equal(candidates.next(at(1e8)), undefined);
  candidates.closed(peer("8.8.8.8", 50_000), at(3), false);
  assert.deepEqual(candidates.next(at(1e8))?.address, peer("8.8.8.8", 6881));
});

test("Candidates: random sequences respect the limits and never return banned addresses (50 seeds)", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = seededRandom(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const candidates = new Candidates(random);
    const open = new Map<string, PeerAddress>();
    const some = () => peer(`9.9.${below(4)}.${below(6)}`, 1 + below(4));
    let now = 0;
    for (let step = 0; step < 2_000; step++) {
      now += below(5_000);
      const act = below(6);
      const [first] = open.values();
      if (act === 0) candidates.add([some(), some()], random() < 0.5 ? "pex" : "tracker", at(now));
      else if (act === 1 && first) {
        candidates.closed(first, at(now), random() < 0.5);
        open.delete(JSON.stringify(first));
      } else if (act === 2 && random() < 0.05) candidates.ban(some());
      else {
        const next = candidates.next(at(now))?.address;
        if (!next) continue;
        assert.ok(!candidates.isBanned(next), `seed ${seed}: banned`);
        assert.ok(!open.has(JSON.stringify(next)), `seed ${seed}: twice`);
        open.set(JSON.stringify(next), next);
        candidates.opened(next);
        const all = [...open.values()];
        assert.ok(all.filter(({ host }) => host === next.host).length <= 2, `seed ${seed}: host`);
        const network = next.host.slice(0, next.host.lastIndexOf("."));
        const near = all.filter(({ host }) => host.startsWith(`${network}.`)).length;
        // A network may hold all of the first five connections; beyond that at most two.
        assert.ok(all.length <= 6 || near <= 6, `seed ${seed}: ${near} of one network`);
      }
    }
    for (const address of open.values()) candidates.closed(address, at(now), false);
    const reopened = new Set<string>();
    for (let next = candidates.next(at(1e12)); next; next = candidates.next(at(1e12)))
      reopened.add(next.address.host);
    assert.ok(reopened.size > 0, `seed ${seed}: something is left to dial`);
  }
});
