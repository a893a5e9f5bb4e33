import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { parseArguments } from "../../src/cli/args.ts";
import { foldersOf } from "../../src/cli/folders.ts";
import { loadConfig } from "../../src/cli/load-config.ts";
import { settingsTable } from "../../src/settings.ts";
import { inFolder } from "../contract/folder.ts";

test("foldersOf follows the XDG variables, and their defaults where they are absent or not absolute", () => {
  assert.deepEqual(foldersOf({ XDG_DATA_HOME: "/d", XDG_CONFIG_HOME: "/c" }, "/home/u"), {
    dataDir: "/d/sluice",
    configFile: "/c/sluice/config.json",
  });
  assert.deepEqual(foldersOf({ XDG_DATA_HOME: "relative" }, "/home/u"), {
    dataDir: "/home/u/.local/share/sluice",
    configFile: "/home/u/.config/sluice/config.json",
  });
});

test("loadConfig reads the file that --config names, and says what is wrong with it", () =>
  inFolder(async (folder) => {
    const table = settingsTable({ dataDir: "/data" });
    const load = (path: string) =>
      loadConfig(table, parseArguments(["--config", path], []), {}, join(folder, "absent"));
    const good = join(folder, "good.json");
    await writeFile(good, '{"http-port": 7001}');
    assert.equal((await load(good)).httpPort, 7001);
    const bad = join(folder, "bad.json");
    await writeFile(bad, "{http-port: 1}");
    await assert.rejects(load(bad), /bad\.json is not JSON/);
    await assert.rejects(load(join(folder, "none.json")), /cannot read the config file/);
    const config = await loadConfig(table, parseArguments([], []), {}, join(folder, "absent"));
    assert.equal(config.httpPort, 6878);
  }));
