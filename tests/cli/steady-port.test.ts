import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { runtime } from "#runtime";
import { steadyPort, withSteadyPort } from "../../src/cli/steady-port.ts";
import { readConfig } from "../../src/config.ts";
import { settingsTable } from "../../src/settings.ts";
import { SILENT } from "../engine/fake-house.ts";

const table = settingsTable({ dataDir: "/data" });
const config = (flags: Readonly<Record<string, string>> = {}) =>
  readConfig(table, { flags: new Map(Object.entries(flags)), environment: {}, file: undefined });

test("withSteadyPort: the same port for the same name, another for another, and none that others have", async () => {
  const port = steadyPort("broadcast news", runtime.sha1);
  assert.ok(port >= 20_000 && port < 30_000);
  assert.notEqual(port, steadyPort("broadcast film", runtime.sha1));
  assert.equal((await withSteadyPort(config(), "broadcast news", runtime, SILENT)).p2pPort, port);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(port, resolve));
  try {
    const said: string[] = [];
    const log = { ...SILENT, warn: (message: string) => void said.push(message) };
    assert.equal((await withSteadyPort(config(), "broadcast news", runtime, log)).p2pPort, 0);
    assert.match(said[0]!, new RegExp(`port ${port}; .*--p2p-port`));
  } finally {
    other.close();
  }
});

test("withSteadyPort: a port that the user names is taken, and nothing of the engine beside", async () => {
  const named = await withSteadyPort(config({ "p2p-port": "7001" }), "broadcast news", runtime, SILENT);
  assert.deepEqual([named.p2pPort, named.store, named.liveLimit, named.cacheLimit], [7001, "memory", 0, 0]);
});
