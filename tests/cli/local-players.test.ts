import assert from "node:assert/strict";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { SILENT_LOG } from "../../src/base/log.ts";
import { createLocalPlayers } from "../../src/cli/local-players.ts";
import { inFolder } from "../contract/folder.ts";

/** A folder with a `vlc` that records its arguments and runs until it is terminated. */
function withPlayer(work: (environment: Record<string, string>, called: string) => Promise<void>) {
  return inFolder(async (folder) => {
    const called = `${folder}/called`;
    await writeFile(`${folder}/vlc`, `#!/bin/sh\nprintf '%s\\n' "$@" >> ${called}\nexec /bin/sleep 30\n`);
    await chmod(`${folder}/vlc`, 0o755);
    await work({ PATH: folder, DISPLAY: ":0" }, called);
  });
}

async function contentOf(path: string): Promise<string> {
  for (;;) {
    const text = await readFile(path, "utf8").catch(() => "");
    if (text.endsWith("\n")) return text;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("LocalPlayers.list: the installed players, or none without a screen", () =>
  withPlayer(async (environment) => {
    const expected = [{ id: "vlc", type: "proxy", protocol: null, name: "vlc", icon: null }];
    assert.deepEqual(await createLocalPlayers(environment, "linux", SILENT_LOG).list(), expected);
    const blind = { PATH: environment.PATH! };
    assert.deepEqual(await createLocalPlayers(blind, "linux", SILENT_LOG).list(), []);
    assert.deepEqual(await createLocalPlayers(blind, "win32", SILENT_LOG).list(), expected);
  }));

test("LocalPlayers.open passes the URL after the end of options; -1 is the first player", () =>
  withPlayer(async (environment, called) => {
    const players = createLocalPlayers(environment, "linux", SILENT_LOG);
    await players.open("-1", "--fullscreen http://127.0.0.1/$(reboot)");
    assert.equal(await contentOf(called), "--play-and-exit\n--\n--fullscreen http://127.0.0.1/$(reboot)\n");
    players.close();
  }));

test("LocalPlayers.open refuses unlisted players and a fifth window", () =>
  withPlayer(async (environment) => {
    const players = createLocalPlayers(environment, "linux", SILENT_LOG);
    for (const id of ["mpv", "/bin/sh", "", "../vlc"])
      await assert.rejects(players.open(id, "http://127.0.0.1/"), { code: "unknown_player" });
    for (let i = 0; i < 4; i++) await players.open("vlc", "http://127.0.0.1/");
    await assert.rejects(players.open("vlc", "http://127.0.0.1/"), { code: "too_many" });
    players.close();
  }));
