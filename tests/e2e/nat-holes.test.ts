import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { type Internet, makeInternet } from "../parts/home-router.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { makeSpaces, type Space, type Spaces } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { after, before, describe, test } = await testsThatNeed("namespaces", "libtorrent", "curl", "router");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PEER = fileURLToPath(new URL("../interop/libtorrent_peer.py", import.meta.url));
const TIME = { timeout: 150_000 };
const HTTP = "http://127.0.0.1:6878";
const PORT = 6881;

/** A typical home router: it keeps the port if possible, and accepts only replies to outgoing traffic. */
const ROUTER_RULES = `table ip home {
  chain out { type nat hook postrouting priority 100; oifname wan masquerade; }
  chain in { type filter hook input priority 0; iifname wan ct state new drop; }
  chain through { type filter hook forward priority 0; iifname wan ct state new drop; }
}`;

describe("two home networks whose routers block incoming connections", TIME, () => {
  let scratch: TempFolder;
  let spaces: Spaces;
  let internet: Internet;
  let torrent: { path: string; infohash: string };
  const started: RunningProcess[] = [];

  before(async () => {
    scratch = await tempFolder("nat-holes");
    spaces = makeSpaces();
    await randomFile(scratch.file("film.bin"), 2 * 1024 * 1024);
    torrent = await torrentOf(scratch.file("film.bin"), 64 * 1024, scratch.file("film.torrent"));
    internet = await makeInternet(spaces, ROUTER_RULES);
  }, TIME);
  after(async () => {
    await Promise.all(started.map((each) => each.stop()));
    await spaces?.remove();
    await scratch?.remove();
  });

  /** Starts an engine in a space; resolves when it serves. */
  async function engineIn(
    space: Space,
    name: string,
    env: Record<string, string> = {},
  ): Promise<RunningProcess> {
    const words = [...space.prefix.slice(1), ...engineCommand(), "serve"];
    const folders = { SLUICE_DATA_DIR: scratch.file(name), XDG_CONFIG_HOME: scratch.path };
    const settings = { SLUICE_UTP: "on", SLUICE_P2P_PORT: String(PORT), SLUICE_LOG: "debug" };
    const engine = startProcess("ip", words, { cwd: ROOT, env: { ...settings, ...folders, ...env } });
    started.push(engine);
    await engine.line((line) => line.includes("Peers"));
    return engine;
  }

  test("connect through a common peer (BEP 55), and one downloads the film from the other", async () => {
    const { server, serverAddress, homes } = internet;
    // The relay soon has the film too, so its upload is limited to almost nothing.
    const relay = await engineIn(server, "middle", { SLUICE_UPLOAD_LIMIT: "1KB" });
    const body = { transport_file_data: (await readFile(torrent.path)).toString("base64") };
    await writeFile(scratch.file("body.json"), JSON.stringify(body));
    const named = await server.run(
      ...([
        "curl",
        "-s",
        "-H",
        "content-type: application/json",
        "--data",
        `@${scratch.file("body.json")}`,
      ] as const),
      `${HTTP}/ace/getstream?format=json`,
    );
    assert.match(named, new RegExp(torrent.infohash));
    const words = [
      ...["seed", torrent.path, scratch.path, "--utp"],
      "--host",
      "0.0.0.0",
      "--port",
      String(PORT),
    ];
    const seed = startProcess("ip", [
      ...[...homes[1].inside.prefix.slice(1), PYTHON, PEER, ...words, "--peer", `${serverAddress}:${PORT}`],
    ]);
    started.push(seed);
    await seed.line((line) => line.includes("listening"));
    const viewer = await engineIn(homes[0].inside, "viewer");
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=${serverAddress}:${PORT}`;
    const curl = (...args: string[]) => homes[0].inside.run("curl", "-s", "--max-time", "100", ...args);
    try {
      await curl(`${HTTP}/ace/getstream?format=json&magnet=${encodeURIComponent(magnet)}`);
      await curl("-f", "-o", scratch.file("got.bin"), `${HTTP}/files/${torrent.infohash}/0/film.bin`);
    } catch (error) {
      const said = `the viewer:\n${viewer.output()}\nthe relay:\n${relay.output()}\nthe seed:\n${seed.output()}`;
      throw new Error(`${error}\n${said}`, { cause: error });
    }
    assert.equal(await sha1OfFile(scratch.file("got.bin")), await sha1OfFile(scratch.file("film.bin")));
  });
});
