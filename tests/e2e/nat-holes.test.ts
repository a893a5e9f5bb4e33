import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runtimeCommand } from "../parts/engine.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { makeSpaces, type Space, type Spaces, whyNoSpaces } from "../parts/namespaces.ts";
import { type RunningProcess, run, startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PEER = fileURLToPath(new URL("../interop/libtorrent_peer.py", import.meta.url));
const TIME = { timeout: 150_000 };
const HTTP = "http://127.0.0.1:6878";
/** The one that anybody can call, and the routers of two homes. */
const MIDDLE = "93.184.216.1";
const ROUTERS = ["93.184.216.11", "93.184.216.12"];
const PORT = 6881;

/** A router as most homes have it: it keeps the port where it can, and lets in only what answers somebody inside. */
const ROUTER_RULES = `table ip home {
  chain out { type nat hook postrouting priority 100; oifname wan masquerade; }
  chain in { type filter hook input priority 0; iifname wan ct state new drop; }
  chain through { type filter hook forward priority 0; iifname wan ct state new drop; }
}`;

const missing = (await whyNoSpaces()) ?? (await whyNotHere());
if (missing !== undefined) console.error(`not tested: peers behind two routers (${missing})`);

async function whyNotHere(): Promise<string | undefined> {
  try {
    await run("nft", ["--version"]);
    await run("curl", ["--version"]);
    await run(PYTHON, ["-c", "import libtorrent"]);
    return undefined;
  } catch (error) {
    return String(error).split("\n")[0];
  }
}

describe("two homes whose routers let nobody in", { ...TIME, skip: missing ?? false }, () => {
  let scratch: TempFolder;
  let spaces: Spaces;
  let middle: Space;
  const homes: Space[] = [];
  let torrent: { path: string; infohash: string };
  const started: RunningProcess[] = [];

  before(async () => {
    scratch = await tempFolder("nat-holes");
    spaces = makeSpaces();
    await randomFile(scratch.file("film.bin"), 2 * 1024 * 1024);
    torrent = await torrentOf(scratch.file("film.bin"), 64 * 1024, scratch.file("film.torrent"));
    middle = await spaces.make("middle");
    const routers = [await spaces.make("router0"), await spaces.make("router1")];
    await spaces.network("internet", [
      { space: middle, device: "wan", addresses: [`${MIDDLE}/24`] },
      ...routers.map((space, i) => ({ space, device: "wan", addresses: [`${ROUTERS[i]}/24`] })),
    ]);
    for (const [i, router] of routers.entries()) {
      const home = await spaces.make(`home${i}`);
      homes.push(home);
      await spaces.wire(
        { space: home, device: "lan", addresses: [`10.78.${i}.2/24`] },
        { space: router, device: "lan", addresses: [`10.78.${i}.1/24`] },
      );
      await home.run("ip", "route", "add", "default", "via", `10.78.${i}.1`);
      await router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
      await router.run("nft", ROUTER_RULES);
    }
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
    const words = [...space.prefix.slice(1), ...runtimeCommand(), "src/main.ts", "serve"];
    const folders = { SLUICE_DATA_DIR: scratch.file(name), XDG_CONFIG_HOME: scratch.path };
    const settings = { SLUICE_UTP: "on", SLUICE_P2P_PORT: String(PORT), SLUICE_LOG: "debug" };
    const engine = startProcess("ip", words, { cwd: ROOT, env: { ...settings, ...folders, ...env } });
    started.push(engine);
    await engine.line((line) => line.includes("Peers"));
    return engine;
  }

  test("meet through a peer that both are connected with (BEP 55), and one has the film of the other", async () => {
    // It holds the film soon as well, and gives next to nothing of it.
    const relay = await engineIn(middle, "middle", { SLUICE_UPLOAD_LIMIT: "1KB" });
    const body = { transport_file_data: (await readFile(torrent.path)).toString("base64") };
    await writeFile(scratch.file("body.json"), JSON.stringify(body));
    const named = await middle.run(
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
      ...[...homes[1]!.prefix.slice(1), PYTHON, PEER, ...words, "--peer", `${MIDDLE}:${PORT}`],
    ]);
    started.push(seed);
    await seed.line((line) => line.includes("listening"));
    const viewer = await engineIn(homes[0]!, "viewer");
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=${MIDDLE}:${PORT}`;
    const curl = (...args: string[]) => homes[0]!.run("curl", "-s", "--max-time", "100", ...args);
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
