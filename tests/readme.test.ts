import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { settingsTable, variableOf } from "../src/settings.ts";

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const readme = read("README.md");
const packageJson = JSON.parse(read("package.json"));
const denoJson = JSON.parse(read("deno.json"));

/** The rows of the settings table as the README must have them. */
function settingsRows(): string[] {
  return Object.values(settingsTable({ dataDir: "" })).map(
    (setting) =>
      `| \`--${setting.name}\` | \`${variableOf(setting)}\` | ${setting.shownDefault} | ${setting.help} |`,
  );
}

test("README has every setting with its variable, default and meaning", () => {
  const rows = settingsRows();
  assert.ok(readme.includes(rows.join("\n")), `the table should be:\n${rows.join("\n")}`);
});

test("README names only scripts that exist", () => {
  for (const [, name] of readme.matchAll(/(?:npm|bun) run ([\w:]+)/g))
    assert.ok(packageJson.scripts[name!], name!);
  for (const [, name] of readme.matchAll(/deno task ([\w:]+)/g)) assert.ok(denoJson.tasks[name!], name!);
});

test("docs/ARCHITECTURE.md names only files that exist", () => {
  const named = [...read("docs/ARCHITECTURE.md").matchAll(/`([\w/-]+\/[\w-]+\.ts)`/g)].map(
    ([, path]) => path!,
  );
  const isThere = (path: string) => existsSync(new URL(`../${path}`, import.meta.url));
  assert.deepEqual(
    named.filter((path) => !isThere(path) && !isThere(`src/${path}`)),
    [],
  );
  assert.ok(named.length > 20);
});

test("package.json: every dependency has its line of reason in docs/ARCHITECTURE.md", () => {
  const architecture = read("docs/ARCHITECTURE.md");
  for (const name of Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies })) {
    assert.ok(architecture.includes(`| \`${name}\` |`), name);
  }
});

test("package.json: every shipped dependency is in NOTICE", () => {
  const notice = read("NOTICE");
  for (const name of Object.keys(packageJson.dependencies)) {
    assert.match(notice, new RegExp(`(^|[\\s,])${name}([\\s,]|$)`, "m"), name);
  }
});

test("deno.json: compile takes in the page, and start and test set up first", () => {
  assert.match(denoJson.tasks.compile, /deno compile .*--include src\/web\/page/);
  for (const library of ["hls.js", "idb-keyval", "peerjs"]) {
    assert.ok(denoJson.tasks.compile.includes(`--include node_modules/${library}/dist`), library);
  }
  assert.match(denoJson.tasks.compile, /src\/main\.ts'$/);
  for (const task of ["start", "test"]) assert.match(denoJson.tasks[task], /^sh .ci\/setup && /);
});
