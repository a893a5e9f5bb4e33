import assert from "node:assert/strict";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { keyValueSuite } from "../contract/key-value-suite.ts";
import { killOften } from "../crash/kills.ts";
import { killServerOften } from "../crash/server-kills.ts";
import { runtimeCommand } from "../parts/engine.ts";
import { testsThatNeed, whyMissing } from "../parts/needs.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const { after, before, test } = await testsThatNeed("redis");

const SEED = 20_261_123;

let folder: TempFolder;
let server: RedisServer;
let count = 0;

before(async () => {
  folder = await tempFolder("redis");
  server = await startRedis(folder.file("main"));
});
after(async () => {
  await server?.stop();
  await folder?.remove();
});

/** Opens the store of this name; `warn` collects warnings. */
function open(name: string, { url = server.url, shared = false, warnings = [] as string[] } = {}) {
  const warn = (message: string) => void warnings.push(message);
  return openStore({ folder: "", kind: "redis", url: `${url}?name=${name}`, shared, warn });
}

async function recordsOf(store: KeyValueStore): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {};
  for await (const [key, value] of store.list("")) all[key] = value;
  return all;
}

// The suite gives each test a folder of its own; here each has a name on the server.
if ((await whyMissing("redis")) === undefined)
  keyValueSuite("redis", (path) => open(path.replace(/\W/g, "-").slice(-40)), { test });

test("redis: stores of different names on one server do not see each other", async () => {
  const [one, two] = [await open("one"), await open("two")];
  await one.commit({ set: [["a", 1]] });
  assert.deepEqual(await recordsOf(two), {});
  await Promise.all([one.close(), two.close()]);
});

test("redis: warns of a server that can lose records", async () => {
  const careless = await startRedis(folder.file("careless"), {
    appendonly: "no",
    "maxmemory-policy": "allkeys-lru",
  });
  const slow = await startRedis(folder.file("slow"), { appendfsync: "everysec" });
  const warningsOf = async (url: string) => {
    const warnings: string[] = [];
    await (await open("w", { url, warnings })).close();
    return warnings.join("\n");
  };
  assert.match(await warningsOf(careless.url), /appendonly no[\s\S]*evict/);
  assert.match(await warningsOf(slow.url), /power failure can lose the last second/);
  assert.equal(await warningsOf(server.url), "");
  await Promise.all([careless.stop(), slow.stop()]);
});

test("redis: user, password and database of the URL; a wrong password is reported at once", async () => {
  const closed = await startRedis(folder.file("closed"), { requirepass: "p@ss" });
  const at = `127.0.0.1:${closed.port}`;
  const store = await open("x", { url: `redis://:p%40ss@${at}/3` });
  assert.equal(await store.commit({ set: [["a", 1]] }), true);
  await store.close();
  await assert.rejects(open("x", { url: `redis://:wrong@${at}` }), { code: "store_unavailable" });
  await assert.rejects(open("x", { url: "redis://a,b" }), { code: "bad_configuration" });
  await closed.stop();
});

// Many more of both: npm run crash -- --redis-kills 200 --redis-server-kills 50.

test("redis: kill -9 of the server under commits: afterwards it has exactly the acknowledged ones", async () => {
  const { acknowledged } = await killServerOften(folder.file("killed"), 5, SEED);
  assert.ok(acknowledged > 0);
});

test("redis: kill -9 of an engine under commits loses no acknowledged one and tears none", async () => {
  const { acknowledged } = await killOften(`${server.url}?name=killed`, runtimeCommand(), 10, SEED);
  assert.ok(acknowledged > 0);
});

test("redis: 10,000 records are listed in order by prefix", async () => {
  const store = await open(`many${count++}`);
  const key = (n: number) => `item/${String(n).padStart(5, "0")}`;
  for (let n = 0; n < 10_000; n += 500)
    await store.commit({ set: Array.from({ length: 500 }, (_, i) => [key(n + i), { n: n + i }]) });
  const seen: string[] = [];
  for await (const [each] of store.list("item/")) seen.push(each);
  assert.deepEqual(
    seen,
    Array.from({ length: 10_000 }, (_, n) => key(n)),
  );
  await store.close();
});
