// `bun tests/bench/library.ts [items] [map|redis]`: times the playlist on the real store, on a map, or on a redis-server of its own.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runtime } from "#runtime";
import type { Infohash } from "../../src/base/ids.ts";
import type { Log } from "../../src/base/log.ts";
import type { ItemDraft, ItemQuery } from "../../src/library/contract.ts";
import type { ItemStore } from "../../src/library/item-sync.ts";
import { createItems } from "../../src/library/items.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { startRedis } from "../interop/redis-server.ts";
import { MapStore } from "../library/map-store.ts";
import { watchHolds } from "./holds.ts";
import { markdownTable } from "./table.ts";

const count = Number(process.argv[2] ?? 100_000);
const onMap = process.argv[3] === "map";
const log: Log = { error: say, warn: say, info() {}, debug() {}, named: () => log };
const rows: string[][] = [];

const folder = await mkdtemp(join(tmpdir(), "sluice-library-"));
const map = new MapStore();
const redis = process.argv[3] === "redis" ? await startRedis(join(folder, "redis")) : undefined;
let store = await open();
try {
  await benchAll();
} finally {
  await store.close();
  await redis?.stop();
  await rm(folder, { recursive: true });
}
console.log(
  markdownTable(
    ["what", "ms", "of CPU, all threads", "longest without the loop, ms", "of our own, ms"],
    rows,
  ),
);

function say(message: string): void {
  console.log(message);
}

async function open(): Promise<KeyValueStore> {
  if (onMap) return map;
  const place = redis ? ({ kind: "redis", url: redis.url } as const) : ({ kind: "sqlite" } as const);
  return runtime.openStore({ folder, ...place, shared: false, warn: say });
}

function openItems(): Promise<ItemStore> {
  return createItems({ store, clock: runtime.clock, log, sha1: runtime.sha1 });
}

async function benchAll(): Promise<void> {
  const drafts = Array.from({ length: count }, (_, i) => draft(i));
  let items = await openItems();
  await time(`import ${count}`, () => bring(items, drafts));
  await time("the same list again", () => bring(items, drafts));
  const later = drafts.map((one, i) => (i % 100 === 7 ? { ...one, title: `${one.title} Plus` } : one));
  const keep = await time("1 % changed", () => bring(items, later));
  await time("remove what the list dropped (none)", () => items.removeExcept(1, keep));
  await store.close();
  store = await open();
  collect();
  const before = process.memoryUsage().rss;
  const heapBefore = heap();
  items = await time("open", openItems);
  collect();
  rows.push(["memory after open, MiB resident", mib(process.memoryUsage().rss - before), "", "", ""]);
  rows.push(["memory after open, MiB of heap", mib(heap() - heapBefore), "", "", ""]);
  await benchQueries(items);
  await time("read all", async () => {
    let seen = 0;
    const reader = items.read({});
    for (let some = await reader.next(); some.length > 0; some = await reader.next()) seen += some.length;
    say(`read: ${seen}`);
  });
  const ids = Array.from({ length: count }, (_, i) => i + 1);
  await time("set favourite, all", () => items.updateMany(ids, { isFavorite: true }));
  await time("set favourite again", () => items.updateMany(ids, { isFavorite: true }));
  await time("delete all to the trash", () => items.delete(ids));
  await time("clear the trash", () => items.clearTrash());
  await time("the list again: all deleted for good", () => bring(items, drafts));
  await time("remove playlist", () => items.removeAll(1));
}

async function benchQueries(items: ItemStore): Promise<void> {
  const queries: [string, ItemQuery][] = [
    ["page, by title", { offset: 50_000, limit: 25 }],
    ["page, as added", { sort: "added", offset: 50_000, limit: 25 }],
    ["page, name", { name: "spört 9", limit: 25 }],
    ["page, no such name", { name: "not there", limit: 25 }],
    ["page, category, tag, favourite", { category: "tv", subcategory: "news", isFavorite: false, limit: 25 }],
    ["page, all ids", { ids: Array.from({ length: count }, (_, i) => i), limit: 25 }],
    ["page, trash", { state: "trash", limit: 25 }],
  ];
  for (const [name, query] of queries) {
    await items.query(query);
    await time(name, () => items.query(query));
  }
}

async function bring(items: ItemStore, drafts: readonly ItemDraft[]): Promise<Set<number>> {
  const ids = new Set<number>();
  for (let at = 0; at < drafts.length; at += 500) {
    const outcome = await items.upsert(drafts.slice(at, at + 500));
    for (const id of outcome.ids) if (id !== undefined) ids.add(id);
  }
  return ids;
}

async function time<T>(name: string, run: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const cpu = process.cpuUsage();
  const stop = watchHolds();
  const result = await run();
  const { longestMs, longestOwnMs } = stop();
  const { user, system } = process.cpuUsage(cpu);
  const took = performance.now() - began;
  rows.push([
    name,
    took.toFixed(1),
    ((user + system) / 1000).toFixed(1),
    longestMs.toFixed(0),
    longestOwnMs.toFixed(0),
  ]);
  return result;
}

function draft(i: number): ItemDraft {
  const words = ["Sport", "News", "Кино", "Música", "Kids", "Docu"];
  const title = `${words[i % 6]} ${(i * 7919) % count} ${["HD", "FHD", "4K", ""][i % 4]} [${i % 50}]`;
  const isSwarm = i % 2 === 0;
  return {
    title,
    content: {
      transport: isSwarm ? "bt" : "hls",
      contentId: null,
      infohash: isSwarm ? (i.toString(16).padStart(40, "a") as Infohash) : null,
      magnet: null,
      url: isSwarm ? null : `https://example.com/live/${i}/playlist.m3u8?token=${i * 31}`,
    },
    category: "tv",
    subcategory: ["news", "sport", "movies"][i % 3]!,
    tags: [["news", "sport", "movies"][i % 3]!, `group ${i % 200}`],
    isLive: 1,
    externalPlaylistId: 1,
    sourceKey: `https://example.com/live/${i}/playlist.m3u8`,
    tvgId: `channel.${i % 5000}`,
    tvgName: title,
    tvgLogo: `https://example.com/logos/${i % 5000}.png`,
    languages: ["eng"],
    countries: ["gb"],
  };
}

function collect(): void {
  (globalThis as { Bun?: { gc(force: boolean): void }; gc?: () => void }).Bun?.gc(true);
  (globalThis as { gc?: () => void }).gc?.();
}

function heap(): number {
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
