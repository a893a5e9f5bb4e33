import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { engineCommand, runtimeCommand } from "../parts/engine.ts";
import { makeHome, startMiniupnpd } from "../parts/home-router.ts";
import { startBroadcast } from "../parts/live-broadcast.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("namespaces", "router");

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TIME = { timeout: 240_000 };
/** Some four seconds of the test pattern. */
const SOME_BYTES = 100_000;
const P2P_PORT = 20_881;
/** The default port; it is free in a separate network namespace. */
const HTTP = "http://127.0.0.1:6878";

/** An engine in a network of its own; resolves when it listens. */
async function engineIn(
  space: Space,
  folder: string,
  reach: Record<string, string>,
): Promise<RunningProcess> {
  const [command, ...args] = engineCommand();
  const engine = startProcess("ip", [...space.prefix.slice(1), command, ...args, "serve"], {
    cwd: ROOT,
    env: { SLUICE_DATA_DIR: folder, XDG_CONFIG_HOME: folder, SLUICE_STORE: "memory", ...reach },
  });
  await engine.line((line) => line.includes("Open"));
  return engine;
}

/** Plays part of the content named by a query, through the engine in a network namespace. */
async function play(space: Space, query: string): Promise<void> {
  const [command, ...args] = runtimeCommand();
  const url = `${HTTP}/ace/getstream?${query}`;
  const player = startProcess(
    "ip",
    [...space.prefix.slice(1), command, ...args, "tests/parts/take-bytes.ts", url, String(SOME_BYTES)],
    { cwd: ROOT },
  );
  await player.line((line) => line.startsWith("took"), 120_000);
  await player.stop();
}

for (const [by, ways] of [
  ["PCP", { upnp: false, natPmp: true }],
  ["UPnP", { upnp: true, natPmp: false }],
] as const) {
  test(`behind a router with ${by}, a broadcast can be played from outside until it ends`, TIME, async () => {
    const scratch = await tempFolder("home");
    const spaces = makeSpaces();
    const stops: (() => Promise<unknown>)[] = [];
    try {
      const home = await makeHome(spaces);
      const daemon = await startMiniupnpd(home, scratch.path, ways);
      stops.push(() => daemon.stop());
      await daemon.line((line) => /HTTP listening|Listening for NAT-PMP/.test(line));
      const source = await startBroadcast("test-pattern", {
        prefix: home.inside.prefix,
        p2pPort: P2P_PORT,
        flags: ["--port-mapping", "on", "--log", "info"],
      });
      stops.push(() => source.stop());
      const at = await source.line((line) => line.includes("peer port mapped by the router"));
      assert.ok(at.includes(`at=${home.externalAddress}:${P2P_PORT} by=${by}`), at);
      const viewer = await engineIn(home.outside, scratch.file("viewer"), {});
      stops.push(() => viewer.stop());
      const peer = `${home.externalAddress}:${P2P_PORT}`;
      await play(
        home.outside,
        `magnet=${encodeURIComponent(`magnet:?xt=urn:btih:${source.infohash}&x.pe=${peer}`)}`,
      );
      await source.stop();
      const left = await home.router.run("nft", "list", "chain", "inet", "filter", "prerouting_miniupnpd");
      assert.doesNotMatch(left, /dnat/, "what was opened is closed");
    } finally {
      for (const stop of stops.reverse()) await stop();
      await spaces.remove();
      await scratch.remove();
    }
  });
}

test("a router maps ports by NAT-PMP and removes the mappings", TIME, async () => {
  const scratch = await tempFolder("nat-pmp");
  const spaces = makeSpaces();
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const home = await makeHome(spaces);
    const daemon = await startMiniupnpd(home, scratch.path, { upnp: false, natPmp: true });
    stops.push(() => daemon.stop());
    await daemon.line((line) => line.includes("Listening for NAT-PMP"));
    const [command, ...args] = runtimeCommand();
    const words = [command, ...args, "tests/parts/nat-pmp-once.ts", String(P2P_PORT)];
    const options = { cwd: ROOT, stdin: "pipe" } as const;
    const mapper = startProcess("ip", [...home.inside.prefix.slice(1), ...words], options);
    stops.push(() => mapper.stop());
    const said = await mapper.line((line) => line.startsWith("mapped"));
    const facts = { internalPort: P2P_PORT, externalPort: P2P_PORT, externalAddress: home.externalAddress };
    for (const [i, protocol] of ["tcp", "udp"].entries()) {
      const mapped = (JSON.parse(said.slice(7)) as (typeof facts & { protocol: string })[])[i]!;
      const { internalPort, externalPort, externalAddress } = mapped;
      assert.deepEqual({ internalPort, externalPort, externalAddress }, facts);
      assert.equal(mapped.protocol, protocol);
    }
    const chain = ["nft", "list", "chain", "inet", "filter", "prerouting_miniupnpd"] as const;
    assert.equal((await home.router.run(...chain)).match(/dnat/g)?.length, 2);
    mapper.child.stdin!.write("\n");
    await mapper.line((line) => line === "unmapped");
    assert.doesNotMatch(await home.router.run(...chain), /dnat/);
  } finally {
    for (const stop of stops.reverse()) await stop();
    await spaces.remove();
    await scratch.remove();
  }
});

for (const [family, addresses] of [
  ["IPv4", ["192.168.5.1/24", "192.168.5.2/24"]],
  ["IPv6", ["fd00:5::1/64", "fd00:5::2/64"]],
] as const) {
  test(`two engines in one ${family} network find each other by local discovery alone`, TIME, async () => {
    const scratch = await tempFolder("subnet");
    const spaces = makeSpaces();
    const stops: (() => Promise<unknown>)[] = [];
    try {
      const [one, two] = [await spaces.make("one"), await spaces.make("two")];
      await spaces.wire(
        { space: one, device: "lan", addresses: [addresses[0]] },
        { space: two, device: "lan", addresses: [addresses[1]] },
      );
      const source = await startBroadcast("test-pattern", { prefix: one.prefix, flags: ["--lsd", "on"] });
      stops.push(() => source.stop());
      const viewer = await engineIn(two, scratch.file("viewer"), { SLUICE_LSD: "on" });
      stops.push(() => viewer.stop());
      await play(two, `infohash=${source.infohash}`);
    } finally {
      for (const stop of stops.reverse()) await stop();
      await spaces.remove();
      await scratch.remove();
    }
  });
}
