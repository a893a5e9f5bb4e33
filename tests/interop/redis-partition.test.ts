import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { engineCommand } from "../parts/engine.ts";
import { makeSpaces, type Space } from "../parts/namespaces.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startProcess } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("redis", "namespaces", "curl");
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const [RUNTIME, ...RUNTIME_ARGS] = engineCommand();
const PARTITION_MS = 30_000;
/** After this time the engine has noticed that the server does not answer (docs/design/store.md: staleness). */
const NOTICED_MS = 12_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls a control method of the engine in a namespace. Returns its result, or its error as text. */
async function call(space: Space, method: string, parameters: Record<string, string> = {}) {
  const ask = async (query: Record<string, string>) => {
    const url = `http://127.0.0.1:6878/server/api?${new URLSearchParams({ api_version: "3", ...query })}`;
    return JSON.parse(await space.run("curl", "-s", "-m", "90", url));
  };
  const { result } = await ask({ method: "get_api_access_token" });
  return (await ask({ method, token: result.token, ...parameters })) as {
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    readonly result: any;
    readonly error: unknown;
  };
}

async function titles(space: Space): Promise<string[]> {
  const { result } = await call(space, "playlist_get");
  return result.playlist.map(({ name, title }: { name?: string; title?: string }) => name ?? title).sort();
}

test("redis: an engine without a network to the server for 30 s serves reads, refuses changes, and differs in nothing afterwards", {
  timeout: 240_000,
}, async () => {
  const scratch = await tempFolder("partition");
  const spaces = makeSpaces();
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const server = await spaces.make("server");
    const near = await spaces.make("near");
    const far = await spaces.make("far");
    for (const [space, device, network] of [
      [near, "near", 1],
      [far, "far", 2],
    ] as const)
      await spaces.wire(
        { space: server, device, addresses: [`10.9.${network}.1/24`] },
        { space, device: "lan", addresses: [`10.9.${network}.2/24`] },
      );
    const options = ["--bind", "*", "--protected-mode", "no", "--save", "", "--dir", scratch.path];
    const durable = ["--appendonly", "yes", "--appendfsync", "always"];
    const redis = startProcess("ip", [...server.prefix.slice(1), "redis-server", ...options, ...durable]);
    stops.push(() => redis.stop());
    await redis.line((line) => line.includes("Ready to accept connections"));
    for (const [space, network] of [
      [near, 1],
      [far, 2],
    ] as const) {
      const engine = startProcess("ip", [...space.prefix.slice(1), RUNTIME, ...RUNTIME_ARGS, "serve"], {
        cwd: ROOT,
        env: {
          ...{ SLUICE_DHT: "off", SLUICE_LSD: "off", SLUICE_PORT_MAPPING: "off" },
          SLUICE_STORE: `redis://10.9.${network}.1`,
          SLUICE_CLUSTER_ADDRESS: `http://10.9.${network}.2:6878`,
          SLUICE_DATA_DIR: scratch.file(space.name),
          XDG_CONFIG_HOME: scratch.file(space.name),
        },
      });
      stops.push(() => engine.stop());
      await engine.line((line) => line.includes("Open"));
    }
    const expected: string[] = [];
    let items = 0;
    /** Adds an item and records its title if the engine has acknowledged it. */
    const add = async (space: Space) => {
      const title = `item-${++items}`;
      const infohash = String(items).padStart(40, "0");
      const { error } = await call(space, "playlist_add_item", { title, infohash });
      if (!error) expected.push(title);
      return error;
    };
    assert.equal(await add(near), null);
    assert.equal(await add(far), null);
    while ((await titles(near)).length < 2 || (await titles(far)).length < 2) await pause(50);

    // The cable is pulled at the server's end: packets of the engine get lost without an error.
    await server.run("ip", "link", "set", "far", "down");
    const begun = performance.now();
    const before = await titles(far);
    // Sent before the engine can know: answered when the server is back.
    const inDoubt = add(far);
    assert.equal(await add(near), null);
    await pause(NOTICED_MS);
    while (performance.now() - begun < PARTITION_MS) {
      assert.match(JSON.stringify(await add(far)), /store unavailable/);
      assert.deepEqual(await titles(far), before, "reads are served");
      assert.equal(await add(near), null);
      await pause(500);
    }
    assert.equal((await call(near, "get_cluster")).result.engines.length, 1, "the engine counts as dead");
    await server.run("ip", "link", "set", "far", "up");
    await inDoubt;
    const isSame = async () => (await titles(far)).join() === (await titles(near)).join();
    // Bounded by the time of the test.
    while (!(await isSame())) await pause(100);
    assert.deepEqual(await titles(far), expected.sort(), "exactly the acknowledged items");
    assert.equal(await add(far), null);
    while ((await titles(near)).length < expected.length) await pause(50);
    assert.deepEqual(await titles(near), expected.sort());
  } finally {
    for (const stop of stops.reverse()) await stop();
    await spaces.remove();
    await scratch.remove();
  }
});
