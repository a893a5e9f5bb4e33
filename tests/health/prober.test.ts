import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { SILENT_LOG } from "../../src/base/log.ts";
import { after } from "../../src/base/time.ts";
import { SOLE_LEASES } from "../../src/cluster/cluster-contract.ts";
import type { ProbeTarget } from "../../src/health/health-contract.ts";
import { HealthRecords } from "../../src/health/health-records.ts";
import { Prober } from "../../src/health/prober.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { FakeClock, settled } from "../engine/fake-clock.ts";
import { seededRandom } from "../seeded-random.ts";
import { filled, patternSeconds } from "./pattern-stream.ts";

const PATTERN = patternSeconds();
/** What a live swarm sends at once to a viewer that joins, in seconds. */
const BACKLOG = 3;

type Kind = "refused" | "silent" | "padding" | "stalled" | "noise" | "alive";

/** A simulated channel. The first `failures` visits of one that plays fail. */
class FakeChannel implements ProbeTarget {
  readonly content: string;
  readonly kind: Kind;
  visits = 0;
  aborted = 0;
  received = 0;
  readonly #clock: FakeClock;
  readonly #startMs: number;
  readonly #failures: number;
  readonly #bytesPerSecond: number;
  readonly #speed: number;

  constructor(
    clock: FakeClock,
    content: string,
    kind: Kind,
    { startMs = 500, failures = 0, bytesPerSecond = 250_000, speed = 1 } = {},
  ) {
    this.#clock = clock;
    this.content = content;
    this.kind = kind;
    this.#startMs = startMs;
    this.#failures = failures;
    this.#bytesPerSecond = bytesPerSecond;
    this.#speed = speed;
  }

  downloaded(): number {
    return this.received;
  }

  async open(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    this.received = 0;
    signal.addEventListener("abort", () => this.aborted++);
    const kind = ++this.visits <= this.#failures ? "refused" : this.kind;
    if (kind === "refused") throw new SluiceError("no_peers", "no peer");
    if (kind === "silent") return new ReadableStream();
    let second = -1;
    return new ReadableStream(
      {
        pull: async (controller) => {
          second++;
          if (second === 0) await this.#wait(this.#startMs);
          else if (kind === "padding" || second >= BACKLOG) await this.#wait(1_000 / this.#speed);
          if (kind === "stalled" && second > 0) return new Promise(() => {});
          const bytes = this.#second(kind, second);
          this.received += bytes.length;
          controller.enqueue(bytes);
        },
      },
      { highWaterMark: 0 },
    );
  }

  #second(kind: Kind, second: number): Uint8Array {
    if (kind === "padding")
      return new Uint8Array(188 * 7).map((_, i) => [0x47, 0x1f, 0xff, 0x10][i % 188] ?? 0);
    if (kind === "noise") return new Uint8Array(50_000).map((_, i) => (i * 7) & 0xff);
    if (kind === "stalled") return PATTERN[0]!.subarray(0, 188 * 8);
    return filled(PATTERN[second]!, this.#bytesPerSecond);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.at(after(this.#clock.now(), ms), resolve));
  }
}

async function openRecords() {
  return HealthRecords.load(openMemory(), SILENT_LOG);
}

test("Prober: of 200 channels, a third of them dead, at least 95 % get the right verdict at 2 Mbit/s", async (t) => {
  const clock = new FakeClock();
  const random = seededRandom(2026);
  const dead = ["refused", "silent", "padding", "stalled", "noise"] as const;
  const channels = Array.from({ length: 200 }, (_, i) => {
    const kind = i % 3 === 0 ? dead[i % dead.length]! : "alive";
    return new FakeChannel(clock, i.toString(16).padStart(16, "0"), kind, {
      startMs: 200 + 14_000 * random() ** 3,
      failures: random() < 0.1 ? 1 : 0,
      bytesPerSecond: 100_000 + 900_000 * random(),
    });
  });
  const records = await openRecords();
  const startAt = clock.now();
  const prober = new Prober({
    leases: SOLE_LEASES,
    ...{
      clock,
      records,
      log: SILENT_LOG,
      intervalSeconds: 86_400,
      players: () => 0,
      onStart: () => () => {},
    },
    async *targets() {
      yield* channels;
    },
  });
  t.after(async () => {
    const closed = prober.close();
    await clock.advance(1_000);
    await closed;
  });
  const isJudged = ({ content }: FakeChannel) => {
    const found = records.get(content);
    return found !== undefined && (found.problem === undefined || found.status === "dead");
  };
  let total = 0;
  const bytes = new Map<FakeChannel, number>();
  const count = () => {
    for (const channel of channels) {
      const before = bytes.get(channel) ?? 0;
      // A new visit counts from zero.
      total += channel.received >= before ? channel.received - before : channel.received;
      bytes.set(channel, channel.received);
    }
  };
  let minutes = 0;
  for (; !channels.every(isJudged) && minutes < 6 * 60; minutes++)
    for (let second = 0; second < 60; second += 4) {
      await clock.advance(4_000);
      count();
    }
  const right = channels.filter(({ content, kind }) => {
    return (records.get(content)!.status === "dead") === (kind !== "alive");
  }).length;
  assert.ok(right >= 0.95 * channels.length, `${right} of ${channels.length} after ${minutes} minutes`);
  const perSecond = (1000 * total) / (clock.now() - startAt);
  assert.ok(perSecond <= 250_000, `${(8 * perSecond) / 1e6} Mbit/s`);
  assert.ok(perSecond > 50_000, `${(8 * perSecond) / 1e6} Mbit/s`);
  const one = records.get(channels[1]!.content)!;
  assert.deepEqual([one.status, one.last!.facts.codecs], ["alive", ["h264", "aac"]]);
});

test("Prober: leaves a channel at once when a player starts, and visits it again when no player plays", async (t) => {
  const clock = new FakeClock();
  const channel = new FakeChannel(clock, "a".repeat(16), "alive");
  const records = await openRecords();
  let players = 0;
  let starts: (isBackground: boolean) => void = () => {};
  const prober = new Prober({
    leases: SOLE_LEASES,
    ...{ clock, records, log: SILENT_LOG, intervalSeconds: 3_600, players: () => players },
    onStart(started) {
      starts = started;
      return () => {};
    },
    async *targets() {
      yield channel;
    },
  });
  t.after(async () => {
    const closed = prober.close();
    await clock.advance(1_000);
    await closed;
  });
  await clock.advance(121_000);
  assert.deepEqual([channel.visits, channel.aborted], [1, 0]);
  starts(false);
  assert.equal(channel.aborted, 1, "before the content of the player is known");
  players = 1;
  await clock.advance(600_000);
  assert.deepEqual(
    [channel.visits, records.get(channel.content)],
    [1, undefined],
    "not while a player plays",
  );
  players = 0;
  await clock.advance(120_000);
  assert.equal(channel.visits, 2);
  assert.equal(records.get(channel.content)!.status, "alive");
  await clock.advance(3_600_000 - 240_000);
  assert.equal(channel.visits, 2);
  await clock.advance(1_200_000);
  assert.equal(channel.visits, 3);
});

test("Prober: leaves the line once to a recording or catch-up, and visits while they run", async (t) => {
  const clock = new FakeClock();
  const channel = new FakeChannel(clock, "a".repeat(16), "alive");
  const records = await openRecords();
  let starts: (isBackground: boolean) => void = () => {};
  const prober = new Prober({
    leases: SOLE_LEASES,
    ...{ clock, records, log: SILENT_LOG, intervalSeconds: 3_600, players: () => 0 },
    onStart(started) {
      starts = started;
      return () => {};
    },
    async *targets() {
      yield channel;
    },
  });
  t.after(async () => {
    const closed = prober.close();
    await clock.advance(1_000);
    await closed;
  });
  await clock.advance(121_000);
  starts(true);
  assert.deepEqual([channel.visits, channel.aborted], [1, 1]);
  await clock.advance(29_000);
  assert.equal(channel.visits, 1, "the recording starts first");
  await clock.advance(8_000);
  assert.equal(channel.visits, 2);
  starts(true);
  await clock.advance(60_000);
  assert.equal(channel.visits, 2, "a channel that fails again and again does not prevent the visit");
  assert.equal(records.get(channel.content)!.status, "alive");
});

test("Prober: a channel that arrives more slowly than it plays is weak, and one that may not be fetched is unknown", async (t) => {
  const clock = new FakeClock();
  const slow = new FakeChannel(clock, "b".repeat(16), "alive", { speed: 0.3 });
  const local: ProbeTarget = {
    content: "c".repeat(16),
    open: async () => {
      throw new SluiceError("url_refused", "a private address");
    },
    downloaded: () => 0,
  };
  const records = await openRecords();
  const prober = new Prober({
    leases: SOLE_LEASES,
    ...{ clock, records, log: SILENT_LOG, intervalSeconds: 3_600, players: () => 0, onStart: () => () => {} },
    async *targets() {
      yield slow;
      yield local;
    },
  });
  t.after(async () => {
    const closed = prober.close();
    await clock.advance(1_000);
    await closed;
  });
  await clock.advance(300_000);
  assert.equal(records.get(slow.content)!.status, "weak");
  assert.equal(records.get(local.content), undefined);
});

test("HealthRecords: survive a restart; two failures in a row are needed for dead; damaged records are skipped", async () => {
  const store = openMemory();
  const records = await HealthRecords.load(store, SILENT_LOG);
  const alive = {
    isAlive: true,
    startMs: 300,
    receivedPerSecond: 500_000,
    facts: { bytesPerSecond: 400_000, codecs: ["h264"], width: 0, height: 0, languages: [], isMoving: true },
  } as const;
  const content = "d".repeat(16);
  const clock = new FakeClock();
  const at = clock.unixSeconds();
  await records.add(content, at, alive);
  assert.equal(records.get(content)!.status, "alive");
  await records.add(content, at, { isAlive: false, problem: "no peer" });
  assert.deepEqual([records.get(content)!.status, records.get(content)!.availability], ["weak", 0.5]);
  await records.add(content, at, { isAlive: false, problem: "no peer" });
  await store.commit({ set: [["health/eeeeeeeeeeeeeeee", { at: -1 }]] });
  await settled();
  const again = await HealthRecords.load(store, SILENT_LOG);
  assert.deepEqual(again.get(content), records.get(content));
  assert.deepEqual([again.get(content)!.status, again.get(content)!.last], ["dead", alive]);
  assert.equal(again.get("e".repeat(16)), undefined);
});
