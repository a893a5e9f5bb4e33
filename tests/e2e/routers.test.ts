import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { type Internet, makeInternet, startMiniupnpd } from "../parts/home-router.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { makeSpaces, type Space, type Spaces } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { after, before, describe, test } = await testsThatNeed("namespaces", "router", "curl", "libtorrent");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PEER = fileURLToPath(new URL("../interop/libtorrent_peer.py", import.meta.url));
const MIB = 1024 * 1024;
const SLOW = { timeout: 150_000 };

describe("peers behind two routers, with the DHT and nothing else", {
  ...SLOW,
}, () => {
  let spaces: Spaces;
  let internet: Internet;
  let scratch: TempFolder;
  let torrent: { path: string; infohash: string };
  const started: RunningProcess[] = [];

  before(async () => {
    scratch = await tempFolder("routers");
    spaces = makeSpaces();
    internet = await makeInternet(spaces);
    await randomFile(scratch.file("film.bin"), 4 * MIB);
    torrent = await torrentOf(scratch.file("film.bin"), 64 * 1024, scratch.file("film.torrent"));
    started.push(await startMiniupnpd(internet.homes[1], scratch.path, { upnp: true, natPmp: true }));
    const node = await startSluice(
      internet.server,
      "node",
      ["serve", "--http-port", "0", "--p2p-port", "6881"],
      {},
    );
    await node.line((line) => line.includes("Peers"));
  }, SLOW);
  after(async () => {
    await Promise.all(started.map((each) => each.stop()));
    await spaces?.remove();
    await scratch?.remove();
  });

  /** Runs the program in a namespace where the DHT is the only way to find peers. */
  async function startSluice(
    space: Space,
    name: string,
    words: readonly string[],
    env: Record<string, string>,
  ): Promise<RunningProcess> {
    const running = startProcess("ip", [...space.prefix.slice(1), ...engineCommand(), ...words], {
      cwd: ROOT,
      env: {
        SLUICE_DHT: "on",
        SLUICE_DHT_NODES: `${internet.serverAddress}:6881`,
        SLUICE_DATA_DIR: scratch.file(name),
        SLUICE_LOG: "debug",
        XDG_CONFIG_HOME: scratch.path,
        ...env,
      },
    });
    started.push(running);
    return running;
  }

  /** Downloads the film with an engine that keeps running; resolves with the SHA-1 of the bytes received. */
  async function fetched(space: Space, name: string, env: Record<string, string>): Promise<string> {
    const running = await startSluice(space, name, ["serve", "--http-port", "6878"], env);
    await running.line((line) => line.includes("Peers"));
    const base = "http://127.0.0.1:6878";
    const magnet = encodeURIComponent(`magnet:?xt=urn:btih:${torrent.infohash}`);
    await space.run("curl", "-sf", "--retry", "5", `${base}/ace/getstream?format=json&magnet=${magnet}`);
    const out = scratch.file(`${name}.out`);
    await space.run("curl", "-sf", "-o", out, `${base}/files/${torrent.infohash}/0/film.bin`);
    return sha1OfFile(out);
  }

  test(
    "a seed of libtorrent and two engines find each other, and the film arrives complete",
    SLOW,
    async () => {
      const [hidden, mapped] = internet.homes;
      // Of the three, only this machine is reachable: its router maps the peer port.
      const env = { SLUICE_PORT_MAPPING: "on", SLUICE_P2P_PORT: "8621" };
      const first = fetched(mapped.inside, "first", env);
      const seed = startProcess("ip", [
        ...[...hidden.inside.prefix.slice(1), PYTHON, PEER, "seed", torrent.path, scratch.path],
        ...["--host", "0.0.0.0", "--dht", `${internet.serverAddress}:6881`],
      ]);
      started.push(seed);
      const wanted = await sha1OfFile(scratch.file("film.bin"));
      assert.equal(await first, wanted);
      assert.equal(await fetched(hidden.inside, "second", { SLUICE_P2P_PORT: "8622" }), wanted);
    },
  );
});
