import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { SILENT_LOG } from "../../src/base/log.ts";
import { withSteadyPort } from "../../src/cli/second-engine.ts";
import { readConfig } from "../../src/settings/config.ts";
import { settingsTable } from "../../src/settings/settings.ts";

const table = settingsTable({ dataDir: "/data" });
const config = (flags: Readonly<Record<string, string>> = {}) =>
  readConfig(table, { flags: new Map(Object.entries(flags)), environment: {}, file: undefined });

test("withSteadyPort: the port derives from the name; a port in use is replaced", async () => {
  const portOf = async (name: string) => (await withSteadyPort(config(), name, runtime, SILENT_LOG)).p2pPort;
  const port = await portOf("broadcast news");
  assert.ok(port >= 20_000 && port < 30_000);
  assert.notEqual(port, await portOf("broadcast film"));
  assert.equal(await portOf("broadcast news"), port);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(port, resolve));
  try {
    const warnings: string[] = [];
    const log = { ...SILENT_LOG, warn: (message: string) => void warnings.push(message) };
    assert.equal((await withSteadyPort(config(), "broadcast news", runtime, log)).p2pPort, 0);
    assert.match(warnings[0]!, new RegExp(`port ${port} is in use; .*--p2p-port`));
  } finally {
    other.close();
  }
});

test("withSteadyPort: keeps the port of the user, and uses neither the database nor the cache", async () => {
  const named = await withSteadyPort(config({ "p2p-port": "7001" }), "broadcast news", runtime, SILENT_LOG);
  assert.deepEqual([named.p2pPort, named.store, named.liveLimit, named.cacheLimit], [7001, "memory", 0, 0]);
});
