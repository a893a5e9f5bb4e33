import assert from "node:assert/strict";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePort, runtimeCommand, startEngine } from "../parts/engine.ts";
import { type LibtorrentPeer, startLibtorrent } from "../parts/libtorrent.ts";
import { startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = runtimeCommand();

/** Runs the program as a user would, to its end. */
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

  test("--version and --help answer and end well", async () => {
    const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
    assert.deepEqual(await sluice(["--version"], env), { code: 0, output: version });
    assert.match(
      (await sluice(["version"], env)).output,
      new RegExp(`^sluice ${version} \\((bun|deno|node) `),
    );
    assert.match((await sluice(["--help"], env)).output, /Usage: sluice \[command\]/);
    assert.match((await sluice(["play", "--help"], env)).output, /Usage: sluice play <link/);
    assert.match((await sluice(["help", "serve"], env)).output, /SLUICE_HTTP_PORT/);
  });

  test("what cannot be read is one line and exit code 2", async () => {
    assert.deepEqual(await sluice(["--http-prot", "1"], env), {
      code: 2,
      output: "sluice: unknown flag --http-prot; did you mean --http-port?",
    });
    const bad = await sluice([], { ...env, SLUICE_HTTP_PORT: "http" });
    assert.equal(bad.code, 2);
    assert.match(bad.output, /^sluice: http-port: expected .* but the variable SLUICE_HTTP_PORT is "http"$/);
    const none = await sluice(["play", "no-such-file.torrent", "-o", "-"], env);
    assert.equal(none.code, 2);
    assert.match(none.output, /^sluice: "no-such-file\.torrent" is neither a magnet, .*$/);
  });

  test("a busy port is one clear line and exit code 1", async () => {
    for (const flag of ["--http-port", "--p2p-port"]) {
      const busy = await listening();
      try {
        const { port } = busy.address() as { port: number };
        const args = ["serve", flag, String(port), "--p2p-host", "127.0.0.1"];
        const { code, output } = await sluice(args, env);
        assert.equal(code, 1, output);
        assert.match(
          output,
          new RegExp(`^sluice: another program listens on 127\\.0\\.0\\.1.*${port}; .* ${flag}$`),
        );
      } finally {
        busy.close();
      }
    }
  });

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`${signal} ends serve well, with a player connected that does not read`, async () => {
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
  let seeder: LibtorrentPeer;
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
    seeder = await startLibtorrent("seed", torrent.path, scratch.path);
    magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    env = { XDG_DATA_HOME: scratch.file("data"), XDG_CONFIG_HOME: scratch.file("config") };
  });
  after(async () => {
    await seeder?.stop();
    await scratch?.remove();
  });

  test("--output FILE writes the largest playable file, whole", async () => {
    const out = scratch.file("out.mkv");
    const { code, output } = await sluice(["play", magnet, "--output", out], env);
    assert.equal(code, 0, output);
    assert.match(output, /out\.mkv: 5000000 bytes/);
    assert.equal(await sha1OfFile(out), sha1);
  });

  test("--output - writes nothing but the file that --index names", async () => {
    const { output: list } = await sluice(["play", magnet, "-o", "-", "--index", "9"], env);
    const index = /^ {2}(\d+) {2}\S*notes\.txt$/m.exec(list)?.[1];
    assert.ok(index !== undefined, list);
    const { code, output } = await sluice(
      ["play", magnet, "-o", "-", "--index", index, "--log", "silent"],
      env,
    );
    assert.equal(code, 0);
    assert.match(output, /some notes/);
  });

  test("--player gives the player an address that has the file", async () => {
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

  test("a swarm without peers is one clear line and exit code 1", async () => {
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
