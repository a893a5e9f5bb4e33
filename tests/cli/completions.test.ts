import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { COMMANDS } from "../../src/cli/commands.ts";
import { completions } from "../../src/cli/completions.ts";
import { manPage } from "../../src/cli/man-page.ts";
import { settingsTable } from "../../src/settings/settings.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { run } from "../parts/process.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { runInProcess } from "./run-in-process.ts";

const table = settingsTable({ dataDir: "/data" });
const withBash = await testsThatNeed("bash");
const withZsh = await testsThatNeed("zsh");
const withFish = await testsThatNeed("fish");
const withMandoc = await testsThatNeed("mandoc");

describe("completions and the manual page", () => {
  let scratch: TempFolder;

  before(async () => {
    scratch = await tempFolder("completions");
  });
  after(() => scratch?.remove());

  async function script(shell: "bash" | "zsh" | "fish"): Promise<string> {
    const path = scratch.file(shell === "zsh" ? "_sluice" : `sluice.${shell}`);
    await writeFile(path, completions(shell, table));
    return path;
  }

  test("completions contain every command, flag and setting, for each shell", () => {
    for (const shell of ["bash", "zsh", "fish"] as const) {
      const text = completions(shell, table);
      const names = [
        ...COMMANDS.flatMap(({ name, flags }) => [name, ...flags.map((flag) => flag.name)]),
        ...Object.values(table).map(({ name }) => name),
      ];
      for (const name of names) assert.ok(text.includes(name), `${name} in ${shell}`);
    }
  });

  test("sluice completions: the shell is an operand; others are usage errors", async () => {
    const { code, out } = await runInProcess(["completions", "fish"], { dataDir: "/data" });
    assert.deepEqual([code, out === completions("fish", table)], [0, true]);
    for (const args of [["completions"], ["completions", "tcsh"]]) {
      const { code, err } = await runInProcess(args, { dataDir: "/data" });
      assert.deepEqual([code, err], [2, "sluice: completions: expected bash, zsh or fish\n"]);
    }
  });

  withBash.test("bash completes commands, flags, values and operands", async () => {
    const cases: readonly [words: string, completed: string][] = [
      ["pl", "play"],
      ["play --fo", "--format"],
      ["play --format ''", "raw ts"],
      ["--log = d", "debug"],
      ["--http-p", "--http-port"],
      ["token ''", "show renew"],
      ["help br", "broadcast"],
    ];
    const path = await script("bash");
    for (const [words, completed] of cases) {
      const command = `source '${path}'; COMP_WORDS=(sluice ${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _sluice; echo "\${COMPREPLY[@]}"`;
      assert.equal((await run("bash", ["-ec", command])).trim(), completed, words);
    }
  });

  withZsh.test("zsh accepts the script", async () => {
    const path = await script("zsh");
    await run("zsh", ["-n", path]);
    const load = `autoload -U compinit; compinit -u -D; source '${path}'; print $_comps[sluice]`;
    assert.equal((await run("zsh", ["-fc", load])).trim(), "_sluice");
  });

  withFish.test("fish completes commands, flags, values and operands", async () => {
    const path = await script("fish");
    await run("fish", ["-n", path]);
    const complete = async (line: string) => {
      const command = `source '${path}'; complete -C '${line}'`;
      const output = await run("fish", ["--no-config", "-c", command]);
      return output.split("\n").map((row) => row.split("\t")[0]);
    };
    assert.ok((await complete("sluice pl")).includes("play"));
    assert.ok((await complete("sluice play --form")).includes("--format"));
    assert.deepEqual((await complete("sluice play --format ")).filter(Boolean).sort(), ["raw", "ts"]);
    assert.ok((await complete("sluice --log de")).includes("debug"));
    assert.deepEqual((await complete("sluice token ")).filter(Boolean).sort(), ["renew", "show"]);
  });

  test("manPage contains every command, flag and setting", () => {
    const page = manPage(table).replaceAll("\\-", "-");
    assert.match(page, /^\.TH SLUICE 1 /);
    for (const { name, flags } of COMMANDS) {
      assert.ok(page.includes(`.SS sluice ${name}`), name);
      for (const flag of flags) assert.ok(page.includes(`--${flag.name}`), flag.name);
    }
    for (const { name } of Object.values(table)) assert.ok(page.includes(`\\fB--${name}\\fR`), name);
  });

  withMandoc.test("mandoc finds no fault in the manual page", async () => {
    const path = scratch.file("sluice.1");
    await writeFile(path, manPage(table));
    assert.equal(await run("mandoc", ["-Tlint", "-Wwarning", path]), "");
  });
});
