import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../../src/base/ids.ts";
import { after, instant } from "../../../src/base/time.ts";
import { type DiscoveryOutput, LocalDiscovery } from "../../../src/protocol/lsd/local-discovery.ts";
import { encodeLsdAnnounce, MAX_LSD_INFOHASHES } from "../../../src/wire/lsd.ts";
import { seededRandom } from "../../seeded-random.ts";

const A = "a1".repeat(20) as Infohash;
const B = "b2".repeat(20) as Infohash;
const MINUTE = 60_000;

/** A machine with a clock controlled by the test; outputs are recorded with their time. */
class TestMachine {
  now = instant(1000);
  readonly out: { readonly at: number; readonly output: DiscoveryOutput }[] = [];
  readonly machine: LocalDiscovery;

  constructor(seed = 1, cookie = "me") {
    this.machine = new LocalDiscovery({ random: seededRandom(seed), cookie });
  }

  input(input: Parameters<LocalDiscovery["handle"]>[0]): void {
    this.machine.handle(input, this.now);
    this.#drain();
  }

  run(ms: number): void {
    const end = after(this.now, ms);
    for (let wakes = 0; ; wakes++) {
      const next = this.machine.nextWake();
      if (next === undefined || next > end) break;
      assert.ok(wakes < 10_000, "wakes repeatedly without progress");
      if (next > this.now) this.now = next;
      this.machine.wake(this.now);
      this.#drain();
    }
    this.now = end;
  }

  announceFrom(infohashes: readonly Infohash[], host: string, { port = 7000, cookie = "other" } = {}): void {
    this.input({ kind: "datagram", bytes: encodeLsdAnnounce(4, { port, infohashes, cookie }), host });
  }

  announces(infohash?: Infohash): number[] {
    return this.out
      .filter(
        ({ output }) =>
          output.kind === "announce" &&
          (infohash === undefined || output.announce.infohashes.includes(infohash)),
      )
      .map(({ at }) => at - 1000);
  }

  found(): string[] {
    return this.out.flatMap(({ output }) =>
      output.kind === "found"
        ? output.addresses.map(({ host, port }) => `${output.infohash.slice(0, 2)} ${host}:${port}`)
        : [],
    );
  }

  #drain(): void {
    for (let output = this.machine.poll(); output; output = this.machine.poll()) {
      this.out.push({ at: this.now, output });
    }
  }
}

function joined(...infohashes: Infohash[]): TestMachine {
  const bench = new TestMachine();
  bench.input({ kind: "port", port: 6881 });
  for (const infohash of infohashes) bench.input({ kind: "join", infohash, announces: true });
  return bench;
}

test("LocalDiscovery: announces a swarm at once, again soon, and then every five minutes", () => {
  const bench = joined(A);
  bench.run(21 * MINUTE);
  const [first, again, ...later] = bench.announces(A);
  assert.ok(first! < 1000, `first after ${first} ms`);
  assert.ok(again! > 5_000 && again! < 15_000, `again after ${again} ms`);
  assert.equal(later.length, 4);
  const gaps = later.map((at, i) => at - (later[i - 1] ?? again!));
  for (const gap of gaps) assert.ok(gap >= 4.5 * MINUTE && gap <= 5.5 * MINUTE, `${gap} ms apart`);
});

test("LocalDiscovery: announces nothing without a port, and no swarms joined only to find peers", () => {
  const bench = new TestMachine();
  bench.input({ kind: "join", infohash: A, announces: true });
  bench.run(MINUTE);
  assert.deepEqual(bench.announces(), []);
  bench.input({ kind: "port", port: 6881 });
  bench.input({ kind: "join", infohash: B, announces: false });
  bench.run(10 * MINUTE);
  assert.ok(bench.announces(A).length > 0);
  assert.deepEqual(bench.announces(B), []);
});

test("LocalDiscovery: swarms joined together share a datagram, and many swarms share few", () => {
  const infohashes = Array.from({ length: 100 }, (_, i) => i.toString(16).padStart(40, "0") as Infohash);
  const bench = joined(...infohashes);
  bench.run(5_000);
  const datagrams = Math.ceil(100 / MAX_LSD_INFOHASHES);
  assert.equal(bench.announces().length, datagrams);
  for (const infohash of infohashes) assert.equal(bench.announces(infohash).length, 1);
  bench.run(60 * MINUTE);
  // Each swarm needs 13 announces an hour: 66 full datagrams.
  assert.ok(bench.announces().length < 120, `${bench.announces().length} datagrams in an hour`);
});

test("LocalDiscovery: sends few datagrams a minute, however many swarms are joined", () => {
  const bench = joined();
  for (let i = 0; i < 1_000; i++) {
    bench.input({ kind: "join", infohash: i.toString(16).padStart(40, "0") as Infohash, announces: true });
    bench.run(100);
  }
  const most = Math.max(
    ...bench.announces().map((from, _, all) => all.filter((at) => at >= from && at < from + MINUTE).length),
  );
  assert.ok(most <= 15, `${most} in a minute`);
});

test("LocalDiscovery: finds a neighbour in a joined swarm, and ignores its own announce", () => {
  const bench = joined(A);
  bench.announceFrom([A, B], "192.168.1.7");
  bench.announceFrom([A], "192.168.1.2", { cookie: "me" });
  assert.deepEqual(bench.found(), ["a1 192.168.1.7:7000"]);
});

test("LocalDiscovery: a neighbour announced before the join is found at once, until it expires", () => {
  const bench = joined();
  bench.announceFrom([A], "192.168.1.7");
  bench.run(9 * MINUTE);
  bench.input({ kind: "join", infohash: A, announces: false });
  assert.deepEqual(bench.found(), ["a1 192.168.1.7:7000"]);
  bench.input({ kind: "leave", infohash: A, announces: false });
  bench.run(12 * MINUTE);
  bench.input({ kind: "join", infohash: A, announces: false });
  assert.equal(bench.found().length, 1);
});

test("LocalDiscovery: a new neighbour is answered within seconds, a known one is not", () => {
  const bench = joined(A);
  bench.run(2 * MINUTE);
  const before = bench.announces(A).length;
  bench.announceFrom([A], "192.168.1.7");
  bench.run(3_000);
  assert.equal(bench.announces(A).length, before + 1);
  bench.run(30_000);
  bench.announceFrom([A], "192.168.1.7");
  bench.run(3_000);
  assert.equal(bench.announces(A).length, before + 1);
});

test("LocalDiscovery: a host that forges a thousand neighbours gets few answers, and displaces no others", () => {
  const bench = joined(A);
  for (let port = 1; port <= 1_000; port++) {
    bench.announceFrom([A], "192.168.1.66", { port });
    bench.run(60);
  }
  const answers = bench.announces(A).length;
  assert.ok(answers <= 6, `${answers} announces in a minute`);
  assert.ok(bench.found().length <= 60, `${bench.found().length} of them looked at in a minute`);
  bench.announceFrom([A], "192.168.1.7");
  assert.equal(bench.found().at(-1), "a1 192.168.1.7:7000");
});

test("LocalDiscovery: a new network gets all announces", () => {
  const bench = joined(A, B);
  bench.run(2 * MINUTE);
  const before = bench.announces(B).length;
  bench.input({ kind: "network" });
  bench.run(2_000);
  assert.equal(bench.announces(B).length, before + 1);
});

test("LocalDiscovery: a swarm that was left is not announced, and finds no peers", () => {
  const bench = joined(A);
  bench.input({ kind: "join", infohash: A, announces: true });
  bench.input({ kind: "leave", infohash: A, announces: true });
  bench.run(2_000);
  assert.equal(bench.announces(A).length, 1);
  bench.input({ kind: "leave", infohash: A, announces: true });
  bench.announceFrom([A], "192.168.1.7");
  bench.run(20 * MINUTE);
  assert.equal(bench.announces(A).length, 1);
  assert.deepEqual(bench.found(), []);
  assert.equal(bench.machine.nextWake(), undefined);
});

for (const seed of [1, 2, 3]) {
  test(`LocalDiscovery: of two engines that start together one finds the other despite 50 % loss, seed ${seed}`, () => {
    const chance = seededRandom(seed);
    const benches = [new TestMachine(seed, "one"), new TestMachine(seed + 100, "two")];
    for (const bench of benches) {
      bench.input({ kind: "port", port: 6881 });
      bench.input({ kind: "join", infohash: A, announces: true });
    }
    const seen = [0, 0];
    for (let ms = 0; ms < 11 * MINUTE; ms += 50) {
      for (const [i, bench] of benches.entries()) {
        bench.run(50);
        for (const { output } of bench.out.slice(seen[i])) {
          if (output.kind !== "announce" || chance() < 0.5) continue;
          benches[1 - i]!.input({
            kind: "datagram",
            bytes: encodeLsdAnnounce(4, output.announce),
            host: `192.168.1.${i}`,
          });
        }
        seen[i] = bench.out.length;
      }
    }
    // Each engine connects to peers that it finds, so one direction is enough.
    assert.ok(
      benches.some((bench) => bench.found().length > 0),
      `seed ${seed}`,
    );
  });
}
