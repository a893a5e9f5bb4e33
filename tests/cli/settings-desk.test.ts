import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/base/utf8.ts";
import { configFrom } from "../../src/cli/load-config.ts";
import { SettingsDesk } from "../../src/cli/settings-desk.ts";
import { settingGroups } from "../../src/settings/groups.ts";
import { settingsTable } from "../../src/settings/settings.ts";

const FILE = "/home/u/.config/sluice/config.json";

/** A desk on a config file in memory; `host` is given by a variable, `http-port` by a flag. */
function settingsDesk(start: string | undefined, path: string | undefined = FILE) {
  const table = settingsTable({ dataDir: "/data" });
  let text = start;
  const sources = async () => ({
    flags: new Map([["http-port", "7000"]]),
    environment: { SLUICE_HOST: "10.0.0.1" },
    file: text === undefined ? undefined : { path: FILE, content: JSON.parse(text) as unknown },
  });
  let running = configFrom(table, { ...{ flags: new Map(), environment: {}, file: undefined } });
  const desk = new SettingsDesk({
    table,
    sources,
    path,
    files: {
      read: async () => (text === undefined ? undefined : encodeUtf8(text)),
      replace: async (_, bytes) => {
        text = decodeUtf8(bytes);
      },
    },
    running: () => running,
    onRestart: () => {},
  });
  const run = async () => {
    running = configFrom(table, await sources());
    desk.applied();
  };
  return { desk, table, run, content: () => (text === undefined ? undefined : JSON.parse(text)) };
}

const HOST = { isHost: true };

test("SettingsDesk.list: every setting once with its value, its source and its group", async () => {
  const { desk, table } = settingsDesk(
    '{"cache-limit":"5GB","access-token":"a-token-of-at-least-32-characters-0"}',
  );
  const { settings } = await desk.list();
  assert.deepEqual(
    settings.map(({ name }) => name).sort(),
    Object.values(table)
      .map(({ name }) => name)
      .sort(),
  );
  const entry = (name: string) => settings.find((each) => each.name === name)!;
  assert.deepEqual([entry("http-port").value, entry("http-port").from], ["7000", "flag"]);
  assert.deepEqual([entry("host").value, entry("host").from], ["10.0.0.1", "variable"]);
  assert.deepEqual([entry("cache-limit").value, entry("cache-limit").from], ["5GB", "file"]);
  assert.deepEqual([entry("access-token").value, entry("access-token").isSecret], [undefined, true]);
  assert.deepEqual(entry("dht").values, ["on", "off"]);
});

test("SettingsDesk.change: writes values, removes null, and reports that a restart is needed until it happened", async () => {
  const { desk, run, content } = settingsDesk('{"dht":"off"}');
  await run();
  assert.equal((await desk.list()).needsRestart, false);
  await desk.change(
    new Map([
      ["cache-limit", "5GB"],
      ["dht", null],
    ]),
    HOST,
  );
  assert.deepEqual(content(), { "cache-limit": "5GB" });
  assert.equal((await desk.list()).needsRestart, true);
  await run();
  assert.equal((await desk.list()).needsRestart, false);
});

test("SettingsDesk.change: refuses the whole change for one invalid, unknown or host-only setting", async () => {
  const { desk, content } = settingsDesk('{"dht":"off"}');
  const refused = async (changes: [string, string][], code: string, text: RegExp, isHost = true) =>
    assert.rejects(
      desk.change(new Map([["lsd", "off"], ...changes]), { isHost }),
      (error) => error instanceof SluiceError && error.code === code && text.test(error.message),
    );
  await refused([["cache-limit", "5 GBx"]], "bad_parameter", /cache-limit: expected a size/);
  await refused([["cache-limt", "5GB"]], "bad_parameter", /did you mean cache-limit/);
  await refused([["port-command", "rm -rf /"]], "access_denied", /only on the engine's computer/, false);
  await refused([["host", "0.0.0.0"]], "access_denied", /only on the engine's computer/, false);
  await refused([["access-token", "short"]], "bad_parameter", /not shown because it is a secret/);
  assert.deepEqual(content(), { dht: "off" });
  await assert.rejects(settingsDesk(undefined, "").desk.change(new Map([["x", "y"]]), HOST));
});

test("SettingsDesk.revert: restores the file of the last start that succeeded, after several changes", async () => {
  const { desk, run, content } = settingsDesk('{"dht":"off"}');
  await run();
  await desk.change(new Map([["p2p-host", "203.0.113.9"]]), HOST);
  await desk.change(new Map([["lsd", "off"]]), HOST);
  assert.equal(await desk.revert("no such address"), true);
  assert.deepEqual(content(), { dht: "off" });
  assert.equal((await desk.list()).problem, "no such address");
  assert.equal(await desk.revert("again"), false);
});

test("settingGroups: each setting belongs to one group, and one without a group is host-only", () => {
  const names = Object.values(settingsTable({ dataDir: "/data" })).map(({ name }) => name);
  const groups = settingGroups([...names, "new-setting"]);
  const grouped = groups.flatMap((group) => group.names);
  assert.deepEqual([...grouped].sort(), [...names, "new-setting"].sort());
  assert.equal(groups.find((group) => group.names.includes("new-setting"))!.isHostOnly, true);
});
