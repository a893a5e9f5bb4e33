import assert from "node:assert/strict";
import { cp, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openStore } from "../../src/runtime/open-store.ts";
import { seededRandom } from "../seeded-random.ts";
import { areSame, History, recordsOf } from "./history.ts";

const PAGE = 4096;
/** Commits up to the snapshot, and in total. */
const KEPT = 120;
const DONE = 160;
const LONGEST_START_MS = 5000;

const DAMAGES = ["bit", "bits", "zeroed", "noise", "truncated", "swapped", "older", "removed"] as const;
type Damage = (typeof DAMAGES)[number];

/** Results of many corruptions. */
export interface CorruptionFigures {
  readonly corruptions: number;
  /** No record was lost. */
  readonly nothingLost: number;
  /** Damage was reported. */
  readonly reported: number;
  readonly slowestStartMs: number;
}

/**
 * Damages a copy of a store repeatedly and opens it: it must start, report damage that loses records, contain all
 * records of the snapshot, and no record that never existed. Throws with the seed if a condition does not hold.
 */
export async function corrupt(folder: string, count: number, seed: number): Promise<CorruptionFigures> {
  const history = new History(seed);
  const models = await makeModels(folder, history);
  let nothingLost = 0;
  let reported = 0;
  let slowestStartMs = 0;
  for (let i = 0; i < count; i++) {
    const one = await corruptOnce(join(folder, "one"), models, history, seed * 1_000_003 + i);
    if (one.isAllThere) nothingLost++;
    if (one.warnings.length > 0) reported++;
    slowestStartMs = Math.max(slowestStartMs, one.startMs);
  }
  return { corruptions: count, nothingLost, reported, slowestStartMs: Math.round(slowestStartMs) };
}

interface Models {
  /** The state after a crash: many records are only in the log. */
  readonly crashed: string;
  /** The state after closing, with the older snapshot restored. */
  readonly closed: string;
  /** An earlier state of the same file, for pages that were never written. */
  readonly early: string;
}

async function makeModels(folder: string, history: History): Promise<Models> {
  const live = join(folder, "live");
  const models = {
    crashed: join(folder, "crashed"),
    closed: join(folder, "closed"),
    early: join(folder, "early"),
  };
  const open = () => openStore({ folder: live, kind: "sqlite", shared: false, warn: assert.fail });
  let store = await open();
  for (let i = 1; i <= KEPT / 2; i++) await store.commit(history.change(i));
  await store.close();
  await cp(live, models.early, { recursive: true });
  store = await open();
  for (let i = KEPT / 2 + 1; i <= KEPT; i++) await store.commit(history.change(i));
  await store.close();
  const snapshot = await readFile(join(live, "records.snapshot"));
  store = await open();
  for (let i = KEPT + 1; i <= DONE; i++) await store.commit(history.change(i));
  await cp(live, models.crashed, { recursive: true });
  await store.close();
  await cp(live, models.closed, { recursive: true });
  await writeFile(join(models.closed, "records.snapshot"), snapshot);
  return models;
}

async function corruptOnce(folder: string, models: Models, history: History, seed: number) {
  const random = seededRandom(seed);
  const model = random() < 0.5 ? models.crashed : models.closed;
  await rm(folder, { recursive: true, force: true });
  await cp(model, folder, { recursive: true });
  const where = await damage(folder, models.early, random);
  const label = `seed ${seed}: ${where}`;

  const warnings: string[] = [];
  const open = () =>
    openStore({ folder, kind: "sqlite", shared: false, warn: (message) => warnings.push(message) });
  const beganMs = performance.now();
  let store = await open().catch((error: unknown) => {
    throw new Error(`${label}: no start`, { cause: error });
  });
  const startMs = performance.now() - beganMs;
  assert.ok(startMs < LONGEST_START_MS, `${label}: the start took ${startMs} ms`);

  const records = await recordsOf(store);
  const isAllThere = areSame(records, history.after(DONE));
  const details = `${label}: ${warnings.join("; ") || "no warning"}`;
  assert.ok(isAllThere || warnings.length > 0, `${details}, and records are lost`);
  for (const [key, json] of records)
    assert.ok(history.wasEver(key, json, 0, DONE), `${details}, ${key} never was so`);
  if (/snapshot|tip|lock/.test(where)) assert.ok(isAllThere, `${details}, and records are lost`);
  else {
    for (const [key] of history.after(KEPT)) {
      assert.ok(
        history.wasEver(key, records.get(key), KEPT, DONE),
        `${details}, ${key} is older than the snapshot's`,
      );
    }
  }

  // The store works on, and the repair persists.
  warnings.length = 0;
  assert.equal(await store.commit({ set: [["item/new", 1]] }), true, details);
  await store.close();
  store = await open();
  assert.deepEqual(warnings, [], `${details}; after it was opened again`);
  assert.ok(
    areSame(await recordsOf(store), new Map([...records, ["item/new", "1"]])),
    `${details}; opened again`,
  );
  await store.close();
  return { isAllThere, warnings: details.endsWith("no warning") ? [] : [details], startMs };
}

/** Damages one file of the store; returns a description. */
async function damage(folder: string, early: string, random: () => number): Promise<string> {
  const below = (limit: number) => Math.floor(random() * limit);
  const files = [
    "records.db",
    "records.db",
    "records.db",
    "records.db-wal",
    "records.snapshot",
    "records.tip",
  ];
  const name = files[below(files.length)]!;
  const path = join(folder, name);
  const kind: Damage = DAMAGES[below(DAMAGES.length)]!;
  if ((await stat(path).catch(() => undefined)) === undefined) return `${name} is not there`;
  const bytes = await readFile(path);
  const pages = Math.max(1, Math.floor(bytes.length / PAGE));
  const page = below(pages) * PAGE;
  const end = Math.min(page + PAGE, bytes.length);
  switch (kind) {
    case "removed":
      await rm(path);
      return `${name} removed`;
    case "truncated":
      await writeFile(path, bytes.subarray(0, random() < 0.5 ? page : below(bytes.length)));
      return `${name} truncated`;
    case "bit":
    case "bits":
      for (let left = kind === "bit" ? 1 : 20; left > 0; left--) bytes[below(bytes.length)]! ^= 1 << below(8);
      break;
    case "zeroed":
      bytes.fill(0, page, end);
      break;
    case "noise":
      for (let at = page; at < end; at++) bytes[at] = below(256);
      break;
    case "swapped": {
      const other = below(pages) * PAGE;
      const kept = Buffer.from(bytes.subarray(page, page + PAGE));
      bytes.copyWithin(page, other, other + PAGE);
      kept.copy(bytes, other);
      break;
    }
    case "older": {
      const before = await readFile(join(early, name)).catch(() => Buffer.alloc(0));
      if (page < before.length) before.copy(bytes, page, page, page + PAGE);
      break;
    }
  }
  await mkdir(folder, { recursive: true });
  await writeFile(path, bytes);
  return `${name} ${kind} at ${page}`;
}
