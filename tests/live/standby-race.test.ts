import assert from "node:assert/strict";
import { test } from "node:test";
import { randomBelow } from "../../src/base/random.ts";
import type { Broadcast } from "../../src/live/broadcast/broadcast-contract.ts";
import type { PieceHeader } from "../../src/wire/live/header.ts";
import { comparePieces } from "../../src/wire/live/trust.ts";
import { isFastRun } from "../parts/test-tiers.ts";
import { seededRandom } from "../seeded-random.ts";
import { FakeStudio, someRequest } from "./broadcast-parts.ts";

const RUNS = isFastRun ? 2 : 8;
const MOST_STANDBYS = 4;
/** Time for several rounds of waiting and collisions. */
const SETTLE_MS = 30_000;

/** Several machines with one key: each receives the others' headers after a delay, as a relay or as a source. */
class Household {
  readonly studios: FakeStudio[] = [];
  readonly broadcasts: Broadcast[] = [];
  readonly delayMs: number;
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.delayMs = 20 + 500 * this.#random();
  }

  async add(count: number): Promise<void> {
    const first = new FakeStudio();
    await (await first.within(first.broadcasts().start(someRequest()))).stop();
    for (let i = 0; i < count; i++) {
      const studio = new FakeStudio();
      const { kept } = studio.files;
      // The folder is copied with its whole content.
      for (const [path, file] of first.files.kept) kept.set(path, { ...file });
      Object.assign(studio, { world: first.world });
      this.#hear(studio);
      const parts = studio.parts();
      const randomBytes = (size: number) =>
        Uint8Array.from({ length: size }, () => randomBelow(this.#random, 256));
      const all = studio.broadcasts({ runtime: { ...parts.runtime, randomBytes } });
      this.studios.push(studio);
      this.broadcasts.push(await studio.within(all.start(someRequest({ isStandby: true }))));
    }
  }

  get onAir(): number[] {
    return this.broadcasts.flatMap((each, i) => (each.figures().health === "standby" ? [] : i));
  }

  #hear(studio: FakeStudio): void {
    const { clock } = studio.world;
    const otherHeaders = () => {
      const until = studio.world.epochMs + clock.now() - this.delayMs;
      const others = this.studios.filter((other) => other !== studio);
      return others.flatMap(({ sent }) => {
        const newest = sent.findLast(({ atMs }) => atMs <= until);
        return newest ? newest.header.value : [];
      });
    };
    const newestOf = (headers: readonly PieceHeader[]) =>
      headers.reduce<PieceHeader | undefined>((a, b) => (a && comparePieces(a, b) >= 0 ? a : b), undefined);
    studio.live = {
      peers: MOST_STANDBYS,
      get newest() {
        return newestOf(otherHeaders());
      },
      get heardAt() {
        return clock.now();
      },
    };
    Object.defineProperty(studio, "rival", {
      get: () => {
        const own = studio.sent.at(-1)?.header.value.epoch ?? 0;
        return newestOf(otherHeaders().filter(({ epoch }) => epoch >= own));
      },
    });
  }
}

test("startStandby: several standbys whose source fails end up with one on air, permanently", async () => {
  let [collisions, ties] = [0, 0];
  for (let seed = 1; seed <= RUNS; seed++) {
    const home = new Household(seed);
    await home.add(2 + (seed % (MOST_STANDBYS - 1)));
    const { world } = home.studios[0]!;
    for (let round = 0; round < 2; round++) {
      await world.clock.advance(SETTLE_MS);
      const label = `seed ${seed}, round ${round}`;
      const [winner, ...more] = home.onAir;
      assert.ok(winner !== undefined && more.length === 0, `${label}: on air are ${home.onAir}`);
      const epochs = home.studios.map(({ sent }) => new Set(sent.map(({ header }) => header.value.epoch)));
      const all = epochs.flatMap((own) => [...own]);
      ties += all.length - new Set(all).size;
      collisions += all.length - 1;
      const counts = home.studios.map(({ sent }) => sent.length);
      await world.clock.advance(20_000);
      assert.deepEqual(home.onAir, [winner], `${label}: it stays`);
      for (const [i, { sent }] of home.studios.entries())
        assert.equal(sent.length > counts[i]!, i === winner, `${label}: ${i} is silent`);
      // That one fails, too.
      await home.broadcasts[winner]!.stop();
      home.broadcasts.splice(winner, 1);
      home.studios.splice(winner, 1);
      if (home.studios.length < 2) break;
    }
    await Promise.all(home.broadcasts.map((each) => each.stop()));
    assert.equal(world.clock.waiting, 0);
  }
  console.log(`${collisions} times one was on air too many, ${ties} times in the same epoch`);
  assert.ok(collisions > 0 && ties > 0, "that was tried");
});
