import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parseArguments } from "../../src/cli/args.ts";
import { configFrom, configSources, foldersOf } from "../../src/cli/load-config.ts";
import { settingsTable } from "../../src/settings/settings.ts";
import { inFolder } from "../contract/folder.ts";

test("foldersOf uses the XDG variables, or their defaults if they are missing or not absolute", () => {
  assert.deepEqual(
    foldersOf({ XDG_DATA_HOME: "/d", XDG_CONFIG_HOME: "/c" }, () => "/home/u"),
    {
      dataDir: "/d/sluice",
      configFile: "/c/sluice/config.json",
    },
  );
  assert.deepEqual(
    foldersOf({ XDG_DATA_HOME: "relative" }, () => "/home/u"),
    {
      dataDir: "/home/u/.local/share/sluice",
      configFile: "/home/u/.config/sluice/config.json",
    },
  );
});

test("foldersOf and configFrom: without a home folder only a named data folder works", async () => {
  const noHome = () => {
    throw new Error("uv_os_homedir returned ENOENT");
  };
  const folders = foldersOf({}, noHome);
  assert.deepEqual(folders, { dataDir: undefined, configFile: undefined });
  assert.equal(foldersOf({ XDG_DATA_HOME: "/d" }, noHome).dataDir, "/d/sluice");
  const table = settingsTable(folders);
  const load = async (...args: string[]) =>
    configFrom(table, await configSources(parseArguments(args, ["data-dir"]), {}, undefined));
  await assert.rejects(load(), /^SluiceError: .* no home folder .*HOME.*--data-dir/);
  assert.equal((await load("--data-dir", "/elsewhere")).dataDir, "/elsewhere");
});

test("configSources reads the file that --config names, and reports what is wrong with it", () =>
  inFolder(async (folder) => {
    const table = settingsTable({ dataDir: "/data" });
    const loadWith = async (args: string[]) =>
      configFrom(table, await configSources(parseArguments(args, []), {}, join(folder, "absent")));
    const load = (path: string) => loadWith(["--config", path]);
    const good = join(folder, "good.json");
    await writeFile(good, '{"http-port": 7001}');
    assert.equal((await load(good)).httpPort, 7001);
    const bad = join(folder, "bad.json");
    await writeFile(bad, "{http-port: 1}");
    await assert.rejects(load(bad), /bad\.json is not JSON/);
    await assert.rejects(load(join(folder, "none.json")), /cannot read the config file/);
    const config = await loadWith([]);
    assert.equal(config.httpPort, 6878);
  }));
