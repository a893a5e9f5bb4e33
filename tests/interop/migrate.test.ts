import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MIGRATION_KEY } from "../../src/cli/store.ts";
import type { KeyValueStore } from "../../src/runtime/contract.ts";
import { openStore } from "../../src/runtime/open-store.ts";
import { engineCommand } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { startRedis } from "./redis-server.ts";

const { test } = await testsThatNeed("redis");
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = engineCommand();
const RECORDS = 6_000;

function start(dataDir: string, ...args: string[]) {
  const env = { SLUICE_DATA_DIR: dataDir, XDG_CONFIG_HOME: dataDir };
  const running = startProcess(RUNTIME, [...RUNTIME_ARGS, ...args], { cwd: ROOT, env });
  const code = new Promise<number | null>((resolve) => running.child.on("close", resolve));
  return { running, code };
}

async function sluice(dataDir: string, ...args: string[]) {
  const { running, code } = start(dataDir, ...args);
  return { code: await code, output: running.output() };
}

/** The line of JSON among the lines of progress. */
function resultOf({ output }: { readonly output: string }): unknown {
  return JSON.parse(output.split("\n").find((line) => line.startsWith("{")) ?? output);
}

async function recordsOf(store: KeyValueStore): Promise<Map<string, unknown>> {
  const all = new Map<string, unknown>();
  for await (const [key, value] of store.list("")) all.set(key, value);
  await store.close();
  return all;
}

test("sluice migrate: to a server and back; continues after kill -9; refuses what it would overwrite", {
  timeout: 120_000,
}, async () => {
  const folder = await tempFolder("migrate");
  const server = await startRedis(folder.file("redis"));
  const warn = (message: string) => assert.fail(message);
  const sqlite = (name: string) =>
    openStore({ folder: join(folder.file(name), "library"), kind: "sqlite", shared: false, warn });
  const redis = () => openStore({ folder: "", kind: "redis", url: server.url, shared: true, warn });
  const from = await sqlite("from");
  const value = (n: number) => ({ title: `Ω ${n} \ud800`, text: "x".repeat(n % 500), n });
  for (let n = 0; n < RECORDS; n += 250)
    await from.commit({ set: Array.from({ length: 250 }, (_, i) => [`item/é/${n + i}`, value(n + i)]) });
  const expected = await recordsOf(from);
  assert.equal(expected.size, RECORDS);

  const there = ["migrate", "--from", "sqlite", "--to", server.url];
  const cut = start(folder.file("from"), ...there);
  const watching = await redis();
  while ((await watching.get(MIGRATION_KEY)) === undefined)
    await new Promise((resolve) => setTimeout(resolve, 1));
  // The server stands still until the command is dead: a fast copy would be complete before that.
  process.kill(server.pid, "SIGSTOP");
  cut.running.child.kill("SIGKILL");
  await cut.code;
  process.kill(server.pid, "SIGCONT");
  await watching.close();
  const unfinished = await sluice(
    folder.file("from"),
    "migrate",
    "--from",
    server.url,
    "--to",
    "sqlite",
    "--force",
  );
  assert.match(unfinished.output, /not complete/);
  const engine = await sluice(
    folder.file("other"),
    "serve",
    "--store",
    server.url,
    "--http-port",
    "0",
    "--p2p-port",
    "0",
  );
  assert.match(engine.output, /migration to this store is not complete/);
  const done = await sluice(folder.file("from"), ...there);
  assert.equal(done.code, 0, done.output);
  assert.match(done.output, new RegExp(`${RECORDS} records are equal in both stores; \\d+ were written`));
  assert.deepEqual(await recordsOf(await redis()), expected);

  const back = ["migrate", "--from", server.url, "--to", "sqlite"];
  const first = await sluice(folder.file("back"), ...back, "--json");
  assert.deepEqual(resultOf(first), { records: RECORDS, changed: RECORDS });
  assert.deepEqual(await recordsOf(await sqlite("back")), expected);
  const again = await sluice(folder.file("back"), ...back);
  assert.match(again.output, /--to already has records; --force replaces them/);
  const forced = await sluice(folder.file("back"), ...back, "--force", "--json");
  assert.deepEqual(resultOf(forced), { records: RECORDS, changed: 0 });
  assert.match((await sluice(folder.file("back"), "migrate", "--from", "sqlite")).output, /--to: expected/);
  await server.stop();
  await folder.remove();
});
