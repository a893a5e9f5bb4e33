import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { engineCommand, runtimeCommand } from "../parts/engine.ts";
import { PYTHON } from "../parts/libtorrent.ts";
import { makeSpaces, type Space, type Spaces } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { randomFile, sha1OfFile, type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { after, before, describe, test } = await testsThatNeed("namespaces", "router", "libtorrent", "curl");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PEER = fileURLToPath(new URL("../interop/libtorrent_peer.py", import.meta.url));
const TRACKER = fileURLToPath(new URL("../parts/one-peer-tracker.py", import.meta.url));
const MIB = 1024 * 1024;
const TIME = { timeout: 150_000 };
/** The next router of the home, which runs the proxy, and the simulated Internet behind it, which the router forwards to. */
const GATE = "10.78.1.1";
const WORLD = "93.184.216.2";
/** The end of a tunnel to that Internet. */
const TUNNEL = "10.99.0.2";
const [SEED_PORT, TRACKER_PORT, PROXY_PORT] = [6881, 6969, 1080];
const HTTP = "http://127.0.0.1:6878";

/** Counts packets that leave the home network, by interface and destination. IPv6 neighbour discovery is the system's own. */
const COUNTERS = `table inet count {
  counter proxy { }
  counter lan { }
  counter tun { }
  set seen { type ipv4_addr . inet_proto . inet_service; flags dynamic; }
  chain out { type filter hook output priority 0; policy accept;
    oifname lo accept
    meta l4proto ipv6-icmp accept
    oifname lan ip daddr ${GATE} counter name proxy accept
    oifname lan meta l4proto { tcp, udp } add @seen { ip daddr . meta l4proto . th dport }
    oifname lan counter name lan accept
    oifname tun counter name tun accept
  }
}`;

/** Every feature that could send packets past the proxy is on. */
const EVERYTHING = {
  SLUICE_DHT: "on",
  SLUICE_LSD: "on",
  SLUICE_UTP: "on",
  SLUICE_PORT_MAPPING: "on",
  SLUICE_LOG: "debug",
  // Deno checks for updates of itself, regardless of the program.
  DENO_NO_UPDATE_CHECK: "1",
};

describe("staying inside", TIME, () => {
  let scratch: TempFolder;
  let spaces: Spaces;
  let home: Space;
  let gate: Space;
  let world: Space;
  let torrent: { path: string; infohash: string };
  const started: RunningProcess[] = [];

  before(async () => {
    scratch = await tempFolder("inside");
    spaces = makeSpaces();
    await randomFile(scratch.file("film.bin"), 4 * MIB);
    torrent = await torrentOf(scratch.file("film.bin"), 64 * 1024, scratch.file("film.torrent"));
    [home, gate, world] = [await spaces.make("home"), await spaces.make("gate"), await spaces.make("world")];
    await spaces.wire(
      { space: home, device: "lan", addresses: ["10.78.1.2/24", "2001:db8:78::2/64"] },
      { space: gate, device: "lan", addresses: [`${GATE}/24`, "2001:db8:78::1/64"] },
    );
    await spaces.wire(
      { space: gate, device: "wan", addresses: ["93.184.216.1/24"] },
      { space: world, device: "wan", addresses: [`${WORLD}/24`] },
    );
    await home.run("ip", "route", "add", "default", "via", GATE);
    await home.run("ip", "route", "add", "default", "via", "2001:db8:78::1");
    await gate.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
    await world.run("ip", "route", "add", "10.78.1.0/24", "via", "93.184.216.1");
    await home.run("nft", COUNTERS);
    const seed = startProcess("ip", [
      ...[...world.prefix.slice(1), PYTHON, PEER, "seed", torrent.path, scratch.path],
      ...["--host", "0.0.0.0", "--port", String(SEED_PORT)],
    ]);
    const tracker = startProcess("ip", [
      ...[
        ...world.prefix.slice(1),
        PYTHON,
        TRACKER,
        "0.0.0.0",
        String(TRACKER_PORT),
        WORLD,
        String(SEED_PORT),
      ],
    ]);
    started.push(seed, tracker);
    await Promise.all(started.map((each) => each.line((line) => line.includes("listening"))));
  }, TIME);
  after(async () => {
    await Promise.all(started.map((each) => each.stop()));
    await spaces?.remove();
    await scratch?.remove();
  });

  /** Runs an engine in the home while `use` does. */
  async function withEngine<T>(name: string, env: Record<string, string>, use: () => Promise<T>): Promise<T> {
    const words = [...home.prefix.slice(1), ...engineCommand(), "serve"];
    const folders = { SLUICE_DATA_DIR: scratch.file(name), XDG_CONFIG_HOME: scratch.path };
    const engine = startProcess("ip", words, { cwd: ROOT, env: { ...EVERYTHING, ...folders, ...env } });
    try {
      await engine.line((line) => /^ +Peers /.test(line));
      return await use();
    } catch (error) {
      throw new Error(`${error}\nthe engine said:\n${engine.output()}`, { cause: error });
    } finally {
      await engine.stop();
    }
  }

  async function withProxy(use: (proxy: RunningProcess) => Promise<void>): Promise<void> {
    const names = ["tracker.test", "router.test"].map((name) => `${name}=${WORLD}`);
    const proxy = startProcess(
      "ip",
      [
        ...gate.prefix.slice(1),
        ...runtimeCommand(),
        "tests/parts/run-proxy.ts",
        GATE,
        String(PROXY_PORT),
        ...names,
      ],
      { cwd: ROOT },
    );
    try {
      await proxy.line((line) => line.startsWith("listening"));
      await use(proxy);
    } finally {
      await proxy.stop();
    }
  }

  /** Requests content as a player does and returns the answer. Rejects if none arrives in time. */
  function ask(infohash: string, trackers: readonly string[], mostSeconds = 100): Promise<string> {
    const magnet = `magnet:?xt=urn:btih:${infohash}${trackers.map((url) => `&tr=${encodeURIComponent(url)}`).join("")}`;
    const time = ["--max-time", String(mostSeconds)];
    return home.run(
      "curl",
      "-s",
      ...time,
      `${HTTP}/ace/getstream?format=json&magnet=${encodeURIComponent(magnet)}`,
    );
  }

  /** Downloads the film; resolves with the SHA-1 of the bytes received. */
  async function fetched(trackers: readonly string[]): Promise<string> {
    await ask(torrent.infohash, trackers);
    const out = scratch.file("out.bin");
    await home.run("curl", "-sf", "-o", out, `${HTTP}/files/${torrent.infohash}/0/film.bin`);
    return sha1OfFile(out);
  }

  /** Packets sent since the last call, and the destinations of LAN packets that were not for the proxy. */
  async function left() {
    const text = await home.run("nft", "reset", "counters", "table", "inet", "count");
    const seen = await home.run("nft", "list", "set", "inet", "count", "seen");
    await home.run("nft", "flush", "set", "inet", "count", "seen");
    const packets = (name: string) =>
      Number(new RegExp(`counter ${name} \\{\\s*packets (\\d+)`).exec(text)?.[1] ?? Number.NaN);
    const strays = /elements = \{([^}]*)\}/.exec(seen)?.[1]?.trim() ?? "";
    return { proxy: packets("proxy"), lan: packets("lan"), tun: packets("tun"), strays };
  }

  const film = () => sha1OfFile(scratch.file("film.bin"));
  const byName = [`udp://tracker.test:${TRACKER_PORT}`, `http://tracker.test:${TRACKER_PORT}/announce`];
  const byAddress = byName.map((url) => url.replace("tracker.test", WORLD));

  test("without a proxy the engine connects directly, and the counters see it", TIME, async () => {
    await left();
    assert.equal(
      await withEngine("free", { SLUICE_DHT_NODES: `${WORLD}:6881` }, () => fetched(byAddress)),
      await film(),
    );
    const { lan, strays } = await left();
    assert.ok(lan > 0);
    assert.match(strays, new RegExp(`${WORLD} \\. tcp \\. ${SEED_PORT}`));
  });

  for (const kind of ["socks5", "http"]) {
    const env = { SLUICE_PROXY: `${kind}://${GATE}:${PROXY_PORT}`, SLUICE_DHT_NODES: "router.test:6881" };

    test(
      `through a strict ${kind} proxy the film arrives complete, and no packet bypasses it`,
      TIME,
      async () => {
        await withProxy(async (proxy) => {
          await left();
          const trackers = kind === "socks5" ? byName.slice(0, 1) : byName;
          assert.equal(await withEngine(`strict-${kind}`, env, () => fetched(trackers)), await film());
          const { proxy: through, lan, strays } = await left();
          assert.deepEqual({ lan, strays }, { lan: 0, strays: "" });
          assert.ok(through > 4 * (MIB / 65_536));
          await proxy.line((line) => line === `connect ${WORLD}:${SEED_PORT}`);
          const asked = kind === "socks5" ? "datagram" : "connect";
          await proxy.line((line) => line === `${asked} tracker.test:${TRACKER_PORT}`);
          if (kind === "socks5") await proxy.line((line) => line === "datagram router.test:6881");
        });
      },
    );

    test(`if the ${kind} proxy is down, only attempts to connect to it leave the network`, TIME, async () => {
      await left();
      const said = await withEngine(`none-${kind}`, env, () =>
        ask("ab".repeat(20), [...byName, ...byAddress]),
      );
      assert.match(said, /error/);
      const { proxy, lan, strays } = await left();
      assert.deepEqual({ lan, strays }, { lan: 0, strays: "" });
      assert.ok(proxy > 0);
    });
  }

  test(
    "through a strict socks5 proxy the DHT finds the seed from a bootstrap node given by name",
    TIME,
    async () => {
      const seen = `${WORLD}:${SEED_PORT + 1}`;
      const words = [...world.prefix.slice(1), ...engineCommand(), "serve", "--http-port", "0"];
      const folders = { SLUICE_DATA_DIR: scratch.file("node"), XDG_CONFIG_HOME: scratch.path };
      const env = {
        ...folders,
        SLUICE_DHT: "on",
        SLUICE_DHT_NODES: "",
        SLUICE_P2P_PORT: String(SEED_PORT + 1),
      };
      const node = startProcess("ip", words, { cwd: ROOT, env });
      started.push(node);
      await node.line((line) => /^ +Peers /.test(line));
      const seed = startProcess("ip", [
        ...[...world.prefix.slice(1), PYTHON, PEER, "seed", torrent.path, scratch.path],
        ...["--host", WORLD, "--port", String(SEED_PORT + 2), "--dht", seen],
      ]);
      started.push(seed);
      await seed.line((line) => line.includes("listening"));
      await withProxy(async (proxy) => {
        await left();
        const reach = {
          SLUICE_PROXY: `socks5://${GATE}:${PROXY_PORT}`,
          SLUICE_DHT_NODES: `router.test:${SEED_PORT + 1}`,
        };
        assert.equal(await withEngine("dht", reach, () => fetched([])), await film());
        const { lan, strays } = await left();
        assert.deepEqual({ lan, strays }, { lan: 0, strays: "" });
        await proxy.line((line) => line === `datagram router.test:${SEED_PORT + 1}`);
      });
    },
  );

  test("bound to an interface, all packets leave there, and none if it is removed", TIME, async () => {
    await spaces.wire(
      { space: home, device: "tun", addresses: [`${TUNNEL}/24`] },
      { space: gate, device: "tun", addresses: ["10.99.0.1/24"] },
    );
    await world.run("ip", "route", "add", "10.99.0.0/24", "via", "93.184.216.1");
    await home.run("ip", "rule", "add", "from", TUNNEL, "table", "100");
    await home.run("ip", "route", "add", "default", "via", "10.99.0.1", "dev", "tun", "table", "100");
    await left();
    const env = { SLUICE_BIND: "tun", SLUICE_DHT_NODES: `${WORLD}:6881` };
    await withEngine("bound", env, async () => {
      assert.equal(await fetched(byAddress), await film());
      const { proxy, lan, tun, strays } = await left();
      assert.deepEqual({ proxy, lan, strays }, { proxy: 0, lan: 0, strays: "" });
      assert.ok(tun > 0);
      await home.run("ip", "link", "del", "tun");
      // Retries for 4 s without success.
      await ask("cd".repeat(20), byAddress, 4).catch(() => "");
      const { tun: _tun, ...rest } = await left();
      assert.deepEqual(rest, { proxy: 0, lan: 0, strays: "" });
    });
  });
});
