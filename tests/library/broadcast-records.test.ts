import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createBroadcastRecords } from "../../src/library/broadcast-records.ts";
import { fakeBroadcastOptions } from "../routes/fake-broadcasts.ts";
import { MapStore } from "./map-store.ts";

const QUALITIES = { renditions: "480p:1M", variants: ["udp://@:1234"], programmes: "1,2" };

test("createBroadcastRecords: stores, replaces and deletes by name, across a restart", async () => {
  const store = new MapStore();
  const records = createBroadcastRecords(store, SILENT_LOG);
  await records.keep({
    ...fakeBroadcastOptions("Nachrichten über alles"),
    relays: ["1.2.3.4:5"],
    bitsPerSecond: 8e6,
    ...QUALITIES,
  });
  await records.keep(fakeBroadcastOptions("film"));
  await records.keep({
    ...fakeBroadcastOptions("film"),
    source: "/film.ts",
    isLooped: true,
    isStandby: true,
    successorPath: "/next.sluice",
  });
  await records.keep(fakeBroadcastOptions("gone"));
  await records.forget("gone");
  assert.deepEqual(await createBroadcastRecords(store, SILENT_LOG).list(), [
    {
      ...fakeBroadcastOptions("Nachrichten über alles"),
      relays: ["1.2.3.4:5"],
      bitsPerSecond: 8e6,
      ...QUALITIES,
    },
    {
      ...fakeBroadcastOptions("film"),
      ...{ source: "/film.ts", isLooped: true, isStandby: true, successorPath: "/next.sluice" },
    },
  ]);
});

test("createBroadcastRecords: logs and ignores a damaged record or one with a wrong name", async () => {
  const store = new MapStore();
  const said: string[] = [];
  const records = createBroadcastRecords(store, { ...SILENT_LOG, error: (message) => said.push(message) });
  await records.keep(fakeBroadcastOptions("film"));
  await store.commit({
    set: [
      ["broadcast/a", { name: "a", source: 5 }],
      ["broadcast/b", fakeBroadcastOptions("c")],
      ["broadcast/d", null],
    ],
  });
  assert.deepEqual(await records.list(), [fakeBroadcastOptions("film")]);
  assert.equal(said.length, 3);
  assert.match(said[0]!, /broadcast\/a cannot be read/);
});

test("createBroadcastRecords: the largest valid options fit a record", async () => {
  const records = createBroadcastRecords(new MapStore(), SILENT_LOG);
  const many = (count: number, length: number) => Array<string>(count).fill("語".repeat(length));
  await records.keep({
    ...fakeBroadcastOptions("x".repeat(64)),
    source: "/".repeat(4096),
    title: "語".repeat(256),
    description: "語".repeat(4096),
    categories: many(32, 64),
    languages: many(32, 3),
    countries: many(32, 2),
    logo: "x".repeat(512),
    trackers: Array<string>(16).fill("x".repeat(512)),
    relays: Array<string>(32).fill(`${"x".repeat(253)}:65535`),
    manifests: Array<string>(8).fill("x".repeat(512)),
    addresses: Array<string>(8).fill(`${"x".repeat(253)}:65535`),
  });
});
