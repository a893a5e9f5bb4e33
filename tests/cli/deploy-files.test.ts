import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { COMMANDS } from "../../src/cli/commands.ts";
import { settingsTable, variableOf } from "../../src/settings/settings.ts";

const DEPLOY = fileURLToPath(new URL("../../deploy", import.meta.url));
const files = readdirSync(DEPLOY, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => {
    const path = `${entry.parentPath}/${entry.name}`;
    return { path, text: readFileSync(path, "utf8") };
  });

test("deploy/: every variable is a setting", () => {
  const known = new Set([...Object.values(settingsTable({ dataDir: "" })).map(variableOf), "SLUICE_CONFIG"]);
  const used = files.flatMap(({ text }) => text.match(/\bSLUICE_[A-Z0-9_]+/g) ?? []);
  assert.ok(used.length > 5);
  assert.deepEqual(
    used.filter((name) => !known.has(name)),
    [],
  );
});

test("deploy/: every command of the program exists", () => {
  const names: readonly string[] = COMMANDS.map(({ name }) => name);
  const used = files.flatMap(({ text }) =>
    [...text.matchAll(/bin\/sluice"?,? "?([a-z]+)/g), ...text.matchAll(/dist\/sluice ([a-z]+)/g)].map(
      ([, name]) => name!,
    ),
  );
  assert.ok(used.length > 5);
  assert.deepEqual(
    used.filter((name) => !names.includes(name)),
    [],
  );
});

test("deploy/cluster: the compose file finds the line of the nginx example that it replaces", () => {
  const textOf = (name: string) => files.find(({ path }) => path.endsWith(name))!.text;
  const [, pattern] = /sed 's\/(.+?)\/server engine-1:6878/.exec(textOf("cluster/compose.yml"))!;
  // Groups of basic regular expressions have backslashes.
  const lines = textOf("edge/nginx.conf").match(new RegExp(pattern!.replace(/\\([()])/g, "$1"), "g"));
  assert.deepEqual(lines, ["server 127.0.0.1:6878 max_fails=3 fail_timeout=10s;"]);
});

test("deploy/systemd: the unit sets the options of the runtime that the compiled program sets otherwise", () => {
  const program = readFileSync(fileURLToPath(new URL("../../src/program.ts", import.meta.url)), "utf8");
  const options = [...program.matchAll(/(BUN_JSC_\w+): "(\d+)"/g)].map(
    ([, name, value]) => `${name}=${value}`,
  );
  assert.ok(options.length > 1);
  const { text } = files.find(({ path }) => path.endsWith("systemd/sluice.service"))!;
  assert.ok(text.includes(`\nEnvironment=${options.join(" ")}\n`), text);
});
