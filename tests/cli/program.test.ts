import assert from "node:assert/strict";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort, runtimeCommand, startEngine } from "../parts/engine.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand();

/** Runs the program to its end. */
async function sluice(args: readonly string[], env: Record<string, string>) {
  const options = { cwd: ROOT, env: { SLUICE_P2P_PORT: "0", SLUICE_HTTP_PORT: "0", ...env } };
  const running = startProcess(RUNTIME, [...RUNTIME_ARGS, "src/main.ts", ...args], options);
  const code = await new Promise<number | null>((resolve) => running.child.on("close", resolve));
  return { code, output: running.output() };
}

describe("the program", { timeout: 600_000 }, () => {
  let scratch: TempFolder;
  let env: Record<string, string>;

  before(async () => {
    scratch = await tempFolder("program");
    env = { XDG_DATA_HOME: scratch.file("data"), XDG_CONFIG_HOME: scratch.file("config") };
  });
  after(() => scratch?.remove());

  test("--version and --help print and exit with 0", async () => {
    const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
    assert.deepEqual(await sluice(["--version"], env), { code: 0, output: version });
    assert.match(
      (await sluice(["version"], env)).output,
      new RegExp(`^sluice ${version} \\((bun|deno|node) `),
    );
    assert.match((await sluice(["--help"], env)).output, /Usage: sluice \[command\]/);
    assert.match((await sluice(["play", "--help"], env)).output, /Usage: sluice play <link/);
    assert.match((await sluice(["settings"], env)).output, /SLUICE_HTTP_PORT/);
  });

  test("an invalid command line or setting is one line and exit code 2", async () => {
    assert.deepEqual(await sluice(["--http-prot", "1"], env), {
      code: 2,
      output: "sluice: unknown flag --http-prot; did you mean --http-port?",
    });
    const bad = await sluice([], { ...env, SLUICE_HTTP_PORT: "http" });
    assert.equal(bad.code, 2);
    assert.match(bad.output, /^sluice: http-port: expected .* but the variable SLUICE_HTTP_PORT is "http"$/);
    const none = await sluice(["play", "no-such-file.torrent", "-o", "-"], env);
    assert.equal(none.code, 2);
    assert.match(none.output, /^sluice: "no-such-file\.torrent" is not a magnet, .*$/);
  });

  test("restart_engine: applies changed settings, and keeps the previous ones if the engine cannot start", async () => {
    const engine = await startEngine({
      env: { XDG_CONFIG_HOME: scratch.file("restart"), SLUICE_P2P_HOST: "" },
    });
    try {
      const control = async (method: string, parameters: Record<string, string> = {}) => {
        const query = new URLSearchParams({ api_version: "3", method, ...parameters });
        const response = await fetch(`${engine.url}/server/api?${query}`);
        // biome-ignore lint/suspicious/noExplicitAny: the test reads members by name.
        const { result } = (await response.json()) as { result: any };
        return result;
      };
      const { token } = await control("get_api_access_token");
      const restartWith = async (values: Record<string, string>) => {
        await control("set_settings", { token, values: JSON.stringify(values) });
        await control("restart_engine", { token });
        for (;;) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          const settings = await control("get_settings", { token }).catch(() => undefined);
          if (settings && !settings.needs_restart) return settings;
        }
      };
      const shownValue = ({ settings }: { settings: { name: string; value: string }[] }, wanted: string) =>
        settings.find(({ name }) => name === wanted)?.value ?? null;
      assert.equal(shownValue(await restartWith({ "cache-limit": "5GB" }), "cache-limit"), "5GB");
      const reverted = await restartWith({ "p2p-host": "203.0.113.9", "cache-limit": "9GB" });
      assert.equal(shownValue(reverted, "cache-limit"), "5GB");
      assert.equal(shownValue(reverted, "p2p-host"), null);
      assert.match(reverted.problem, /cannot listen on 203\.0\.113\.9/);
    } finally {
      await engine.stop();
    }
  });

  test("SIGHUP: applies changed settings, and keeps the previous ones if the file is invalid; sluice status reports the state", async () => {
    const folder = scratch.file("hangup");
    await mkdir(`${folder}/sluice`, { recursive: true });
    const file = `${folder}/sluice/config.json`;
    const engine = await startEngine({ env: { XDG_CONFIG_HOME: folder } });
    try {
      const output = async (line: RegExp) => {
        while (!line.test(engine.output())) await new Promise((resolve) => setTimeout(resolve, 20));
      };
      const statusOf = (port: string) => sluice(["status", "--host", "127.0.0.1", "--http-port", port], env);
      const { port } = new URL(engine.url);
      const ready = await statusOf(port);
      assert.equal(ready.code, 0, ready.output);
      assert.match(ready.output, /is ready\.\n {2}ok {4}engine: the engine is running\n {2}ok {4}database/);
      await writeFile(file, '{"cache-limit": "much"}');
      process.kill(engine.pid, "SIGHUP");
      await output(/cannot read the changed settings.*cache-limit/);
      await writeFile(file, '{"log-format": "json"}');
      process.kill(engine.pid, "SIGHUP");
      await output(/the settings have changed: restarting/);
      await output(/Sluice.*[\s\S]*Sluice/);
      assert.equal((await statusOf(port)).code, 0);
      process.kill(engine.pid, "SIGTERM");
      await output(/"message":"stopped"/);
      assert.equal((await statusOf(port)).code, 3);
    } finally {
      await engine.stop();
    }
  });

  test("a port in use is one line and exit code 1", async () => {
    for (const flag of ["--http-port", "--p2p-port"]) {
      const busy = await listening();
      try {
        const { port } = busy.address() as { port: number };
        const args = ["serve", flag, String(port), "--p2p-host", "127.0.0.1"];
        const { code, output } = await sluice(args, env);
        assert.equal(code, 1, output);
        assert.match(
          output,
          new RegExp(`^sluice: TCP port ${port} at (?:::|127\\.0\\.0\\.1) is in use\\. .* ${flag}\\.$`),
        );
      } finally {
        busy.close();
      }
    }
  });

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`${signal} ends serve with 0, even with a player that does not read`, async () => {
      const engine = await startEngine();
      const open = await fetch(`${engine.url}/app/hls.js`);
      const closed = new Promise<number | null>((resolve) => engine.child.on("close", resolve));
      process.kill(engine.pid, signal);
      assert.equal(await closed, 0, engine.output());
      await open.body?.cancel().catch(() => {});
      await engine.stop();
    });
  }
});

describe("sluice play", { timeout: 600_000 }, () => {
  const size = 5_000_000;
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let magnet: string;
  let sha1: string;
  let env: Record<string, string>;

  before(async () => {
    scratch = await tempFolder("play");
    await mkdir(scratch.file("films"));
    await randomFile(scratch.file("films/film.mkv"), size);
    await writeFile(scratch.file("films/notes.txt"), "some notes\n");
    sha1 = await sha1OfFile(scratch.file("films/film.mkv"));
    const torrent = await torrentOf(scratch.file("films"), 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    env = { XDG_DATA_HOME: scratch.file("data"), XDG_CONFIG_HOME: scratch.file("config") };
  });
  after(async () => {
    await seeder?.stop();
    await scratch?.remove();
  });

  test("--output FILE writes the largest playable file", async () => {
    const out = scratch.file("out.mkv");
    const { code, output } = await sluice(["play", magnet, "--output", out], env);
    assert.equal(code, 0, output);
    assert.match(output, /out\.mkv: 5000000 bytes/);
    assert.equal(await sha1OfFile(out), sha1);
  });

  test("--output - writes only the file of --index; --list lists all files", async () => {
    const { output: list } = await sluice(["play", magnet, "-o", "-", "--index", "9"], env);
    const index = /^ {2}(\d+) {2}\S*notes\.txt$/m.exec(list)?.[1];
    assert.ok(index !== undefined, list);
    const { code, output } = await sluice(
      ["play", magnet, "-o", "-", "--index", index, "--log", "silent"],
      env,
    );
    assert.equal(code, 0);
    assert.match(output, /some notes/);
    const listed = await sluice(["play", magnet, "--list", "--json", "--log", "silent"], env);
    const content = JSON.parse(listed.output.split("\n").find((line) => line.startsWith('{"name"'))!);
    assert.deepEqual(
      content.files.map((file: { index: number; size: number }) => [file.index, file.size]).sort(),
      [
        [Number(index), 11],
        [1 - Number(index), size],
      ].sort(),
    );
  });

  test("--player starts the player with a URL of the file", async () => {
    const player = scratch.file("player");
    const kept = scratch.file("played");
    const fetching = `const { writeFileSync } = require("node:fs");
      fetch(process.argv.at(-1)).then((r) => r.arrayBuffer()).then((b) => writeFileSync(${JSON.stringify(kept)}, new Uint8Array(b)));`;
    await writeFile(scratch.file("player.cjs"), fetching);
    await writeFile(player, `#!/bin/sh\nexec node ${scratch.file("player.cjs")} "$@"\n`);
    await chmod(player, 0o755);
    const { code, output } = await sluice(["play", magnet, "--player", player], env);
    assert.equal(code, 0, output);
    assert.equal(await sha1OfFile(kept), sha1);
  });

  test("a swarm without peers is one line and exit code 1", async () => {
    const lonely = `magnet:?xt=urn:btih:${"ab".repeat(20)}&x.pe=127.0.0.1:${await freePort()}`;
    const { code, output } = await sluice(["play", lonely, "-o", "-", "--peers-timeout", "1s"], env);
    assert.equal(code, 1, output);
    assert.match(output, /^sluice: .*peer/m);
  });
});

async function listening(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
