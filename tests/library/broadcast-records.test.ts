import assert from "node:assert/strict";
import { test } from "node:test";
import { createBroadcastRecords } from "../../src/library/broadcast-records.ts";
import { SILENT } from "../engine/fake-house.ts";
import { fakeWish } from "../routes/fake-desk.ts";
import { MapStore } from "./map-store.ts";

test("createBroadcastRecords: keeps, replaces and forgets by name, over a restart", async () => {
  const store = new MapStore();
  const records = createBroadcastRecords(store, SILENT);
  await records.keep({ ...fakeWish("Nachrichten über alles"), relays: ["1.2.3.4:5"], bitsPerSecond: 8e6 });
  await records.keep(fakeWish("film"));
  await records.keep({ ...fakeWish("film"), source: "/film.ts", isLooped: true, isStandby: true });
  await records.keep(fakeWish("gone"));
  await records.forget("gone");
  assert.deepEqual(await createBroadcastRecords(store, SILENT).list(), [
    { ...fakeWish("Nachrichten über alles"), relays: ["1.2.3.4:5"], bitsPerSecond: 8e6 },
    { ...fakeWish("film"), source: "/film.ts", isLooped: true, isStandby: true },
  ]);
});

test("createBroadcastRecords: a record that is damaged, or under another's name, is left out and told", async () => {
  const store = new MapStore();
  const said: string[] = [];
  const records = createBroadcastRecords(store, { ...SILENT, error: (message) => said.push(message) });
  await records.keep(fakeWish("film"));
  await store.commit({
    set: [
      ["broadcast/a", { name: "a", source: 5 }],
      ["broadcast/b", fakeWish("c")],
      ["broadcast/d", null],
    ],
  });
  assert.deepEqual(await records.list(), [fakeWish("film")]);
  assert.equal(said.length, 3);
  assert.match(said[0]!, /broadcast\/a cannot be read/);
});

test("createBroadcastRecords: the largest wish that can be broadcast fits a record", async () => {
  const records = createBroadcastRecords(new MapStore(), SILENT);
  const many = (count: number, length: number) => Array<string>(count).fill("語".repeat(length));
  await records.keep({
    ...fakeWish("x".repeat(64)),
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
