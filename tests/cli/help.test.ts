import assert from "node:assert/strict";
import { test } from "node:test";
import { COMMANDS, GLOBAL_FLAGS } from "../../src/cli/commands.ts";
import { commandHelp, generalHelp, settingsText } from "../../src/cli/help.ts";
import { describeSettings } from "../../src/settings/config.ts";
import { settingsTable, variableOf } from "../../src/settings/settings.ts";

const table = settingsTable({ dataDir: "/data" });

test("generalHelp names every command", () => {
  for (const command of COMMANDS) assert.ok(generalHelp().includes(`  ${command.name}`), command.name);
});

test("commandHelp lists the flags of the command and few settings, which exist", () => {
  const known = Object.values(table).map((setting): string => setting.name);
  for (const { name, flags, shownSettings = [], takesSettings } of COMMANDS) {
    const help = commandHelp(name, table);
    for (const flag of [...flags, ...GLOBAL_FLAGS]) assert.ok(help.includes(`--${flag.name}`), flag.name);
    assert.ok(shownSettings.length <= 10 && shownSettings.every((setting) => known.includes(setting)));
    for (const setting of shownSettings) assert.ok(help.includes(`--${setting} `), setting);
    assert.doesNotMatch(help, /--segment-seconds/);
    assert.equal(help.includes("sluice settings lists all settings"), takesSettings);
    assert.match(help, /\nExamples\n/);
  }
});

test("settingsText: every setting with its variable and default; values with their source, but no secrets", () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const described = describeSettings(table, {
    flags: new Map([["host", "0.0.0.0"]]),
    environment: { SLUICE_ACCESS_TOKEN: secret },
    file: { path: "/etc/c.json", content: { "http-port": 7000 } },
  });
  const text = settingsText(described, false);
  for (const setting of Object.values(table)) {
    assert.ok(text.includes(`--${setting.name} `), setting.name);
    assert.ok(text.includes(variableOf(setting)), setting.name);
  }
  assert.match(text, /now 0\.0\.0\.0 \(the flag --host\)/);
  assert.match(text, /now 7000 \("http-port" in \/etc\/c\.json\)/);
  assert.match(text, /now set \(the variable SLUICE_ACCESS_TOKEN\)/);
  const json = settingsText(described, true);
  const rows = JSON.parse(json) as { name: string; value: unknown; source: string | null }[];
  assert.equal(rows.length, Object.keys(table).length);
  assert.deepEqual(rows.find(({ name }) => name === "http-port")?.value, 7000);
  assert.equal(rows.find(({ name }) => name === "log")?.source, null);
  for (const output of [text, json]) assert.ok(!output.includes(secret));
});

test("help fits a terminal of 120 columns", () => {
  for (const text of [generalHelp(), ...COMMANDS.map((command) => commandHelp(command.name, table))]) {
    for (const line of text.split("\n")) assert.ok(line.length <= 120, line);
  }
});
