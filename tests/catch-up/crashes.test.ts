import assert from "node:assert/strict";
import { SILENT_LOG } from "../../src/base/log.ts";
import { after, type Instant, instant, type UnixSeconds } from "../../src/base/time.ts";
import { createCatchUp } from "../../src/catch-up/catch-up.ts";
import type { KeptMedia } from "../../src/catch-up/catch-up-contract.ts";
import type { Item } from "../../src/library/contract.ts";
import { UnitScanner } from "../../src/media/unit-scanner.ts";
import type { Clock, Files, KeyValueStore, OpenFile } from "../../src/runtime/contract.ts";
import { files } from "../../src/runtime/files.ts";
import { openMemory } from "../../src/runtime/kv-memory.ts";
import { settled } from "../engine/fake-clock.ts";
import { FakeItems, WEB_CONTENT } from "../library/fake-items.ts";
import { until } from "../library/until.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { seededRandom } from "../seeded-random.ts";
import { PatternSource } from "./pattern-source.ts";

const { test } = await testsThatNeed("time");

const CHANNELS = 4;
const HOURS = 24;
/** Less than the day has, so that the oldest media is removed. */
const LIMIT_BYTES = 100_000_000;
/** Media of this time is sent at once while no crash is near. */
const STEP_SECONDS = 10;

/** Seconds that are sent one at a time before a crash. */
const LAST_SECONDS = 10;
/** Steps between them, in ticks; before, pictures have two seconds. */
const SECOND_TICKS = 90_000;

/** Returns how many of the last pictures follow each other by one second. */
async function lastSeconds(media: KeptMedia): Promise<number> {
  const scanner = new UnitScanner();
  const times: number[] = [];
  let bytes = 0;
  for await (const chunk of media.read({ start: 0, end: media.bytes })) {
    for (const { dts } of scanner.push(chunk)) times.push(dts);
    bytes += chunk.length;
  }
  assert.equal(bytes, media.bytes);
  let count = 0;
  while (times.at(-1 - count)! - times.at(-2 - count)! === SECOND_TICKS) count++;
  return count;
}

const never = new Promise<never>(() => {});

/** A clock whose timers can be late, as those of a busy machine are: the time passes first, and then all due timers run. */
class LateClock implements Clock {
  #now = instant(1000);
  #timers = new Set<{ readonly at: Instant; readonly run: () => void }>();

  now(): Instant {
    return this.#now;
  }

  unixSeconds(): UnixSeconds {
    return Math.floor(unixMsAt(this.#now) / 1000) as UnixSeconds;
  }

  at(at: Instant, run: () => void): () => void {
    const timer = { at, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  pass(ms: number): void {
    this.#now = after(this.#now, ms);
    for (const timer of [...this.#timers]) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }
}

const unixMsAt = (now: Instant) => 1_700_000_000_000 + now;

/** A process that a test kills: from then on none of its operations happens, and none settles. */
class Life {
  isOver = false;
  /** Operations in progress. */
  #pending = 0;

  /** Waits until the process has nothing to do but to wait for time or data. */
  async rest(): Promise<void> {
    for (let quiet = 0; quiet < 8; quiet++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#pending > 0) quiet = 0;
    }
  }

  store(store: KeyValueStore): KeyValueStore {
    return {
      get: (key) => this.#do(() => store.get(key)),
      list: (prefix) => store.list(prefix),
      commit: (change) => this.#do(() => store.commit(change)),
      close: async () => {},
    };
  }

  files(real: Files): Files {
    const guarded = (file: OpenFile): OpenFile => ({
      read: (at, into) => this.#do(() => file.read(at, into)),
      write: (at, bytes) => this.#do(() => file.write(at, bytes)),
      truncate: (bytes) => this.#do(() => file.truncate(bytes)),
      // To sync makes a difference only if the power fails.
      sync: async () => {},
      close: () => this.#do(() => file.close()),
    });
    return {
      ...real,
      open: (path) => this.#do(async () => guarded(await real.open(path))),
      remove: (path) => this.#do(() => real.remove(path)),
      freeBytes: (path) => this.#do(() => real.freeBytes(path)),
    };
  }

  async #do<T>(work: () => Promise<T>): Promise<T> {
    if (this.isOver) return never;
    this.#pending++;
    const done = await work().finally(() => this.#pending--);
    return this.isOver ? never : done;
  }
}

test("catch-up: a day of four channels with a kill every hour loses at most the last second, within the limit", {
  timeout: 600_000,
}, async (t) => {
  const folder = await tempFolder("catch-up-crashes");
  t.after(() => folder.remove());
  const [store, clock, random] = [openMemory(), new LateClock(), seededRandom(15)];
  const items = new FakeItems(() => clock.unixSeconds());

  const channels: Item[] = [];
  for (let i = 0; i < CHANNELS; i++)
    channels.push(await items.add({ title: `Channel ${i}`, content: WEB_CONTENT, isLive: 1 }));
  const sources = new Map<number, PatternSource>();
  const unixMs = () => unixMsAt(clock.now());
  const open = (life: Life, openChannel: (item: Item) => Promise<ReadableStream<Uint8Array>>) =>
    createCatchUp({
      ...{ store: life.store(store), clock, files: life.files(files), items, unixMs, log: SILENT_LOG },
      ...{ folder: folder.path, windowMs: 86_400_000, limitBytes: LIMIT_BYTES, open: openChannel },
    });
  const begin = async (life: Life) => {
    for (const { id } of channels) sources.set(id, new PatternSource(true));
    const catchUp = await open(life, (item) => sources.get(item.id)!.open());
    for (const item of channels) await catchUp.add(item, { allowPrivateUrls: false });
    await until(() => [...sources.values()].every(({ isOpen }) => isOpen));
  };
  const diskBytes = async () => {
    let bytes = 0;
    for (const channel of await files.list(`${folder.path}/catch-up`))
      for (const name of await files.list(`${folder.path}/catch-up/${channel}`))
        bytes += (await files.stat(`${folder.path}/catch-up/${channel}/${name}`))?.size ?? 0;
    return bytes;
  };
  const sendAll = (send: (source: PatternSource) => void) => {
    for (const source of sources.values()) send(source);
  };
  const found: number[] = [];
  let mostBytes = 0;
  for (let hour = 0; hour < HOURS; hour++) {
    const life = new Life();
    await begin(life);
    const minute = 60 * Math.floor(59 + random());
    for (let second = 0; second < minute; second += STEP_SECONDS) {
      sendAll((source) => source.sendMany(STEP_SECONDS));
      await life.rest();
      clock.pass(1_000 * STEP_SECONDS);
      await life.rest();
    }
    for (let step = 0; step < 4 * LAST_SECONDS; step++) {
      if (step % 4 === 0) sendAll((source) => source.send());
      await life.rest();
      clock.pass(250);
      await life.rest();
    }
    // The crash comes at any moment of the second after that.
    sendAll((source) => source.send());
    clock.pass(Math.floor(1_000 * random()));
    for (let turn = 30 * random(); turn > 0; turn--)
      await new Promise<void>((resolve) => setImmediate(resolve));
    life.isOver = true;
    await settled();
    const next = new Life();
    const reopened = await open(next, () => never);
    for (const item of channels) {
      const media = await reopened.open(item, { startMs: unixMs() - 60_000, endMs: unixMs() + 60_000 });
      assert.ok(media);
      found.push(await lastSeconds(media));
    }
    next.isOver = true;
    const bytes = await diskBytes();
    mostBytes = Math.max(mostBytes, bytes);
    assert.ok(bytes <= LIMIT_BYTES, `${bytes} bytes`);
  }
  // What was sent a second before the kill is there: ten pictures, the last of which ends no unit yet, have eight steps.
  assert.equal(found.length, HOURS * CHANNELS);
  assert.ok(
    Math.min(...found) >= LAST_SECONDS - 2,
    `only ${Math.min(...found)} of the last ${LAST_SECONDS} seconds`,
  );
  // The limit was reached, so that the oldest media was removed.
  assert.ok(mostBytes > 0.98 * LIMIT_BYTES, `${mostBytes} bytes`);
});
