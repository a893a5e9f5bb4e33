import assert from "node:assert/strict";
import { Redis } from "ioredis";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { until } from "../library/until.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const { after, before, test } = await testsThatNeed("redis");

let folder: TempFolder;
let server: RedisServer;
let redis: Redis;

before(async () => {
  folder = await tempFolder("redis-shared");
  server = await startRedis(folder.file("main"));
  redis = new Redis(server.port, "127.0.0.1");
});
after(async () => {
  redis?.disconnect();
  await server?.stop();
  await folder?.remove();
});

function open(name: string, url = server.url): Promise<KeyValueStore> {
  const warn = (message: string) => assert.fail(message);
  return openStore({ folder: "", kind: "redis", url: `${url}?name=${name}`, shared: false, warn });
}

async function recordsOf(store: KeyValueStore): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {};
  for await (const [key, value] of store.list("")) all[key] = value;
  return all;
}

/** Waits until the store returns this value. */
const gets = (store: KeyValueStore, key: string, value: unknown) =>
  until(async () => (await store.get(key)) === value, `${key} to be ${value}`);

/** Breaks the connections on which engines wait for commits. */
async function cut(): Promise<void> {
  const clients = String(await redis.client("LIST")).split("\n");
  const waiting = clients.filter((line) => / cmd=xread /.test(line));
  for (const line of waiting) await redis.client("KILL", "ID", /id=(\d+)/.exec(line)![1]!);
}

test("redis: engines see each other's records, and a watcher gets their keys after it can read them", async () => {
  const [one, two] = [await open("seen"), await open("seen")];
  const told: string[] = [];
  const end = two.watch!("a/", (keys) => {
    for (const key of keys) void two.get(key).then((value) => told.push(`${key}=${JSON.stringify(value)}`));
  });
  await one.commit({
    set: [
      ["a/1", 1],
      ["b/1", 1],
    ],
  });
  await two.commit({ set: [["a/own", 1]] });
  await until(() => told.length > 0, "the first change");
  await one.commit({ delete: ["a/1"] });
  await until(() => told.length > 1, "the deletion");
  assert.deepEqual(told, ["a/1=1", "a/1=undefined"], "of another process, of this prefix");
  end();
  await one.commit({ set: [["a/2", 2]] });
  await gets(two, "a/2", 2);
  assert.equal(told.length, 2);
  assert.deepEqual(await recordsOf(one), await recordsOf(two));
  await Promise.all([one.close(), two.close()]);
});

test("redis: of two engines that count in the same record with check, none loses a write", async () => {
  const engines = await Promise.all([open("count"), open("count"), open("count")]);
  const addOne = async (store: KeyValueStore) => {
    for (;;) {
      const before = (await store.get("n")) as number | undefined;
      const change = { check: [["n", before]], set: [["n", (before ?? 0) + 1]] } as const;
      if (await store.commit(change)) return;
      assert.notEqual(await store.get("n"), before, "a refused commit shows the value that it met");
    }
  };
  await Promise.all(
    engines.map(async (store) => {
      for (let i = 0; i < 200; i++) await addOne(store);
    }),
  );
  for (const store of engines) await gets(store, "n", 600);
  await Promise.all(engines.map((store) => store.close()));
});

test("redis: many engines that write the same keys at the same time end with the same records", async () => {
  const engines = await Promise.all([open("same"), open("same"), open("same")]);
  await Promise.all(
    engines.map(async (store, engine) => {
      for (let i = 0; i < 150; i++) {
        const key = `k/${(i * 7 + engine) % 10}`;
        await store.commit(i % 5 === 4 ? { delete: [key] } : { set: [[key, `${engine} ${i}`]] });
      }
    }),
  );
  await engines[0]!.commit({ set: [["end", 1]] });
  for (const store of engines) await gets(store, "end", 1);
  const names = await redis.hgetall("{sluice:same}:records");
  const stored = Object.fromEntries(Object.entries(names).map(([key, json]) => [key, JSON.parse(json)]));
  for (const store of engines) assert.deepEqual(await recordsOf(store), stored);
  await Promise.all(engines.map((store) => store.close()));
});

test("redis: an engine whose notifications break off catches up; also if the log does not reach back so far", async () => {
  const [one, two] = [await open("cut"), await open("cut")];
  const told = new Set<string>();
  two.watch!("", (keys) => {
    for (const key of keys) told.add(key);
  });
  await one.commit({ set: [["a", 1]] });
  await gets(two, "a", 1);
  await cut();
  await one.commit({ set: [["b", 1]] });
  await gets(two, "b", 1);
  // All entries but the last are removed, as if a thousand commits had followed.
  await redis.xtrim("{sluice:cut}:log", "MAXLEN", 0);
  await cut();
  await one.commit({ set: [["c", 1]], delete: ["a"] });
  await one.commit({ set: [["d", 1]] });
  await gets(two, "d", 1);
  assert.deepEqual(await recordsOf(two), await recordsOf(one));
  await until(() => told.has("d"), "the watcher is called after a reload, too");
  await Promise.all([one.close(), two.close()]);
});

test("redis: records that a failover lost disappear from the engines, and their watchers get the keys", async () => {
  const [one, two] = [await open("over"), await open("over")];
  await one.commit({ set: [["kept", 1]] });
  const keys = ["records", "revision", "log"].map((name) => `{sluice:over}:${name}`);
  const saved = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  await one.commit({ set: [["lost", 1]] });
  await gets(two, "lost", 1);
  const told: string[] = [];
  two.watch!("", (some) => void told.push(...some));
  // The promoted replica had not received the last commit; another engine has written since.
  const restore = redis.multi();
  for (const [i, key] of keys.entries()) restore.restore(key, 0, saved[i]!, "REPLACE");
  await restore.exec();
  await cut();
  const three = await open("over");
  await three.commit({ set: [["new", 1]] });
  await three.commit({ set: [["newer", 1]] });
  await until(() => told.includes("lost"), "the call of the watcher");
  for (const store of [one, two, three]) await gets(store, "newer", 1);
  for (const store of [one, two]) assert.deepEqual(await recordsOf(store), { kept: 1, new: 1, newer: 1 });
  await Promise.all([one, two, three].map((store) => store.close()));
});

test("redis: a server that does not answer: reads are served, changes are refused, and none of both is lost or torn", async () => {
  const paused = await startRedis(folder.file("paused"));
  const [one, two] = [await open("p", paused.url), await open("p", paused.url)];
  await one.commit({ set: [["a", 1]] });
  await gets(two, "a", 1);
  process.kill(paused.pid, "SIGSTOP");
  // Sent before the engine can know; it is answered when the server is back.
  const sent = one.commit({ set: [["sent", 1]] });
  const acknowledged: string[] = [];
  const refused: string[] = [];
  const pending: Promise<unknown>[] = [];
  for (let n = 0; refused.length < 3; n++) {
    const record = [`n/${n}`, n] as const;
    const done = () => acknowledged.push(record[0]);
    const refuse = (error: unknown) => {
      assert.equal((error as { code?: string }).code, "store_unavailable");
      refused.push(record[0]);
    };
    pending.push(two.commit({ set: [record] }).then(done, refuse));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(await one.get("a"), 1);
  assert.deepEqual(await recordsOf(two), { a: 1 });
  // Deno takes a child that it has stopped for an ended one.
  process.kill(paused.pid, "SIGCONT");
  assert.equal(await sent, true);
  await Promise.all(pending);
  await gets(two, "sent", 1);
  const after = Object.keys(await recordsOf(two)).filter((key) => key.startsWith("n/"));
  assert.deepEqual(after.sort(), acknowledged.sort());
  await Promise.all([one.close(), two.close()]);
  await paused.stop();
});
