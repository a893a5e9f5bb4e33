import assert from "node:assert/strict";
import { test } from "node:test";
import { SluiceError } from "../../src/base/errors.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/base/utf8.ts";
import { configFrom } from "../../src/cli/load-config.ts";
import { SettingsDesk } from "../../src/cli/settings-desk.ts";
import { readConfig } from "../../src/settings/config.ts";
import { settingGroups } from "../../src/settings/groups.ts";
import { type SettingsTable, settingsTable } from "../../src/settings/settings.ts";

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
    onApply(changed) {
      running = changed;
    },
    onRestart: () => {},
  });
  const run = async () => {
    running = configFrom(table, await sources());
    desk.applied();
  };
  return {
    desk,
    table,
    run,
    running: () => running,
    content: () => (text === undefined ? undefined : JSON.parse(text)),
  };
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

test("SettingsDesk.change: applies what a running engine can change; the rest needs a restart", async () => {
  const { desk, run, running } = settingsDesk(undefined);
  await run();
  await desk.change(
    new Map([
      ["download-limit", "2MB"],
      ["dht", "off"],
    ]),
    HOST,
  );
  assert.deepEqual([running().downloadLimit, running().dht], [2_000_000, "on"]);
  const { needsRestart, settings } = await desk.list();
  assert.equal(needsRestart, true);
  const live = (name: string) => settings.find((each) => each.name === name)!.isLive;
  assert.deepEqual([live("download-limit"), live("dht")], [true, false]);
  await desk.change(new Map([["dht", null]]), HOST);
  assert.equal((await desk.list()).needsRestart, false);
  // The cache can be resized, but only a restart turns it off.
  const cacheLimit = running().cacheLimit;
  await desk.change(new Map([["cache-limit", "0"]]), HOST);
  assert.deepEqual([running().cacheLimit, (await desk.list()).needsRestart], [cacheLimit, true]);
});

/** Values of settings whose default is empty or no value. */
const SAMPLES: Readonly<Record<string, string>> = {
  cache: "s3://KEY:SECRET@films",
  "cluster-address": "http://10.0.0.5:6878",
  "link-key": "0123456789abcdef0123456789abcdef",
  schedule: "22:00-06:30 up=500KB down=0",
  "dht-nodes": "192.0.2.1:6881",
  trackers: "udp://tracker.example:6969/announce",
  "allowed-hosts": "tv.lan",
  "intranet-networks": "10.1.0.0/16",
  "trusted-proxies": "10.1.0.1",
  "allowed-origins": "https://tv.example",
  "access-token": "a-token-of-at-least-32-characters-0",
  bind: "192.0.2.9",
  proxy: "socks5://192.0.2.1:1080",
  "ice-servers": "stun:stun.example.org:3478",
  "port-file": "/run/port",
  "port-command": "/usr/bin/port",
  "ip-filter": "/etc/list.p2p",
  "turn-servers": "turn:user:password@turn.example:3478",
  "device-interfaces": "eth0",
};

const BAD = "\u0000 nothing accepts this";

/** Returns the text with which the command line refuses a value; undefined if it accepts it. */
function flagRefusal(table: SettingsTable, name: string, value: string): string | undefined {
  try {
    readConfig(table, { flags: new Map([[name, value]]), environment: {}, file: undefined });
    return undefined;
  } catch (error) {
    return (error as SluiceError).message;
  }
}

test("SettingsDesk: every flag makes the round trip through the page, and a bad value is refused with its own words", async () => {
  const table = settingsTable({ dataDir: "/data" });
  let refused = 0;
  for (const { name, kind, shownDefault } of Object.values(table)) {
    // A variable and a flag override these two here.
    if (name === "host" || name === "http-port") continue;
    const { desk, content } = settingsDesk(undefined);
    const candidates = [SAMPLES[name], kind.values?.at(-1), shownDefault, "30s", "5GB", "1"];
    const value = candidates.find((each) => each !== undefined && !flagRefusal(table, name, each)) ?? "";
    assert.notEqual(value, "", `${name} needs a sample value`);
    await desk.change(new Map([[name, value]]), HOST);
    assert.deepEqual(content(), { [name]: value }, name);
    const entry = (await desk.list()).settings.find((each) => each.name === name)!;
    assert.deepEqual([entry.value, entry.from], [kind.isSecret ? undefined : value, "file"], name);
    const refusal = flagRefusal(table, name, BAD);
    if (refusal !== undefined) refused++;
    if (refusal !== undefined)
      await assert.rejects(desk.change(new Map([[name, BAD]]), HOST), (error: SluiceError) => {
        assert.equal(error.code, "bad_parameter", name);
        assert.equal(error.message, refusal.replace(`the flag --${name} is`, "the new value is"), name);
        return true;
      });
    await desk.change(new Map([[name, null]]), HOST);
    assert.deepEqual(content(), {}, name);
  }
  assert.ok(refused > 40, `${refused} settings refuse a bad value`);
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
