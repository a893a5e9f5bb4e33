import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runtime } from "#runtime";
import { createAccessControl } from "../../src/accounts/access-control.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { runInProcess } from "./run-in-process.ts";

test("token show, token renew: the stored token and a new one, effective at once in a running engine", async () => {
  const folder = await tempFolder("token");
  try {
    const dataDir = folder.file("data");
    // An engine has the database open while the command runs.
    const store = await runtime.openStore({
      folder: join(dataDir, "library"),
      kind: "sqlite",
      shared: false,
      warn: () => {},
    });
    const engine = await createAccessControl({ store, randomBytes: runtime.randomBytes });
    const first = await engine.token();
    const tool = (...args: string[]) => runInProcess(["token", ...args], { dataDir });
    assert.deepEqual(await tool("show"), { code: 0, out: `${first}\n`, err: "" });
    assert.deepEqual(JSON.parse((await tool("show", "--json")).out), { access_token: first });
    const renewed = await tool("renew");
    assert.match(renewed.out, /^[0-9a-f]{64}\n$/);
    assert.equal(await engine.isToken(first), false);
    assert.equal(await engine.isToken(renewed.out.trim()), true);
    await store.close();
  } finally {
    await folder.remove();
  }
});

test("token: a fixed token is shown and cannot be renewed; a store in memory and unknown words are errors", async () => {
  const folder = await tempFolder("token");
  try {
    const dataDir = folder.file("data");
    const fixed = "0123456789abcdef0123456789abcdef";
    const tool = (...args: string[]) => runInProcess(["token", ...args], { dataDir });
    assert.equal((await tool("show", "--access-token", fixed)).out, `${fixed}\n`);
    const renewed = await tool("renew", "--access-token", fixed);
    assert.equal(renewed.code, 2);
    assert.match(renewed.err, /^sluice: the setting access-token fixes the token/);
    assert.match((await tool("show", "--store", "memory")).err, /store is memory/);
    for (const args of [[], ["dance"]]) {
      const { code, err } = await tool(...args);
      assert.deepEqual([code, err], [2, "sluice: token: expected show or renew\n"]);
    }
  } finally {
    await folder.remove();
  }
});
