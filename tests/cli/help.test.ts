import assert from "node:assert/strict";
import { test } from "node:test";
import { banner } from "../../src/cli/banner.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { commandHelp, generalHelp } from "../../src/cli/help.ts";
import { settingsTable, variableOf } from "../../src/settings.ts";

const table = settingsTable({ dataDir: "/data" });

test("generalHelp names every command", () => {
  for (const command of COMMANDS) assert.ok(generalHelp().includes(`  ${command.name}`), command.name);
});

test("commandHelp of serve and play names every setting with its variable, and examples", () => {
  for (const name of ["serve", "play"] as const) {
    const help = commandHelp(name, table);
    for (const setting of Object.values(table)) {
      assert.ok(help.includes(`--${setting.name} `), setting.name);
      assert.ok(help.includes(variableOf(setting)), setting.name);
    }
    assert.match(help, /\nExamples\n/);
  }
});

test("commandHelp of commands on the records shows where those are, and nothing of playing", () => {
  for (const name of ["token", "account", "backup", "restore"] as const) {
    const help = commandHelp(name, table);
    assert.match(help, /--data-dir FOLDER\n/);
    assert.doesNotMatch(help, /--segment-seconds/);
    assert.match(help, /sluice serve --help lists all others/);
    const { shownSettings = [] } = COMMANDS.find((command) => command.name === name)!;
    const known = Object.values(table).map((setting): string => setting.name);
    assert.ok(shownSettings.length > 0 && shownSettings.every((setting) => known.includes(setting)));
  }
});

test("help fits a terminal of 120 columns", () => {
  for (const text of [generalHelp(), ...COMMANDS.map((command) => commandHelp(command.name, table))]) {
    for (const line of text.split("\n")) assert.ok(line.length <= 120, line);
  }
});

test("banner says where it listens, where data is kept, what to open and how others get in", () => {
  const facts = {
    version: "1.2.3",
    runtime: "bun 1",
    hasUdp: true,
    p2pPort: 8621,
    dataDir: "/data",
    cacheLimit: 20e9,
  };
  const alone = banner({ ...facts, http: { host: "127.0.0.1", port: 6878 }, lanAddresses: ["192.168.1.5"] });
  assert.match(alone, /Open +http:\/\/127\.0\.0\.1:6878\/\n/);
  assert.match(alone, /Data +\/data \(cache up to 20GB\)/);
  assert.match(alone, /--host 0\.0\.0\.0/);
  assert.match(alone, /curl 'http:\/\/127\.0\.0\.1:6878\/ace\/getstream\?/);
  assert.doesNotMatch(alone, /192\.168/);
  const open = banner({ ...facts, http: { host: "0.0.0.0", port: 7000 }, lanAddresses: ["192.168.1.5"] });
  assert.match(open, /Open +http:\/\/127\.0\.0\.1:7000\/\n/);
  assert.match(open, /Network +http:\/\/192\.168\.1\.5:7000\/\n/);
});
