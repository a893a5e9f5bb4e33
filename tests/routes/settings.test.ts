import assert from "node:assert/strict";
import { test } from "node:test";
import type { SettingsService } from "../../routes/http/dependencies.ts";
import { fakeApp } from "./client.ts";

function settingsApp() {
  const changes: [Record<string, string | null>, boolean][] = [];
  let restarts = 0;
  const settings: SettingsService = {
    list: async () => ({
      file: "/config.json",
      needsRestart: true,
      problem: undefined,
      settings: [
        {
          name: "cache-limit",
          group: "Speed and storage",
          help: "Size",
          value: "5GB",
          defaultText: "20GB",
          expected: "a size",
          values: undefined,
          isSecret: false,
          from: "file",
          isHostOnly: false,
          isLive: true,
        },
      ],
    }),
    change: async (asked, { isHost }) => void changes.push([Object.fromEntries(asked), isHost]),
    restart: () => void restarts++,
  };
  const app = fakeApp({ dependencies: { settings } });
  const control = async (method: string, parameters: Record<string, string> = {}) => {
    const { token } = (await app.json("/server/api?method=get_api_access_token&api_version=3")).result;
    return app.json(`/server/api?${new URLSearchParams({ api_version: "3", method, token, ...parameters })}`);
  };
  return { ...app, control, changes, restarts: () => restarts };
}

test("get_settings, set_settings, restart_engine: list, change and restart with the token", async () => {
  const { control, changes, restarts } = settingsApp();
  const { result } = await control("get_settings");
  assert.equal(result.file, "/config.json");
  assert.equal(result.needs_restart, true);
  assert.deepEqual([result.settings[0].value, result.settings[0].default], ["5GB", "20GB"]);
  assert.equal((await control("set_settings", { values: '{"cache-limit":"9GB","dht":null}' })).result, "ok");
  assert.deepEqual(changes, [[{ "cache-limit": "9GB", dht: null }, true]]);
  assert.equal((await control("restart_engine")).result, "ok");
  assert.equal(restarts(), 1);
});

test("set_settings: refuses what is not an object of texts", async () => {
  const { control, changes } = settingsApp();
  for (const values of ["[]", "{", '{"a":1}', '"x"', `{"a":"${"x".repeat(20_000)}"}`])
    assert.equal((await control("set_settings", { values })).error.code, 103, values.slice(0, 20));
  assert.deepEqual(changes, []);
});

test("get_settings: needs the token, and an engine that was started by serve", async () => {
  const { json } = settingsApp();
  assert.equal((await json("/server/api?method=get_settings&api_version=3")).error.code, 104);
  const { json: without } = fakeApp();
  const { token } = (await without("/server/api?method=get_api_access_token&api_version=3")).result;
  const { error } = await without(`/server/api?method=get_settings&api_version=3&token=${token}`);
  assert.match(error.message, /sluice serve/);
});
