import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast } from "../parts/live-broadcast.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type TempFolder, tempFolder } from "../parts/torrent-files.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";

const { after, before, describe, test } = await testsThatNeed("redis");

const TAKEOVER_MS = 15_000;

async function call(engine: EngineProcess, method: string, parameters: Record<string, string> = {}) {
  const ask = async (query: Record<string, string>) => {
    const response = await fetch(
      `${engine.url}/server/api?${new URLSearchParams({ api_version: "3", ...query })}`,
    );
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    const { result, error } = (await response.json()) as { result: any; error: unknown };
    assert.ok(!error, `${method}: ${JSON.stringify(error)}`);
    return result;
  };
  const { token } = await ask({ method: "get_api_access_token" });
  return ask({ method, token, ...parameters });
}

async function until(holds: () => Promise<boolean>, what: string, withinMs = 30_000): Promise<number> {
  const begun = performance.now();
  while (!(await holds())) {
    assert.ok(performance.now() - begun < withinMs, `${what} within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return performance.now() - begun;
}

/** The engine that plays a request, after redirects. */
async function playedBy(engine: EngineProcess, magnet: string): Promise<string> {
  const url = `${engine.url}/ace/getstream?magnet=${encodeURIComponent(magnet)}`;
  const response = await fetch(url, { redirect: "manual" });
  await response.body?.cancel();
  assert.equal(response.status, 302);
  return new URL(response.headers.get("location")!).origin;
}

describe("three engines on one Redis server", { timeout: 240_000 }, () => {
  let scratch: TempFolder;
  let redis: RedisServer;
  let broadcast: BroadcastProcess;
  const engines: EngineProcess[] = [];
  /** Requests for a playlist that have no answer yet. */
  const requests: ServerResponse[] = [];
  const lists = createServer((_, response) => void requests.push(response));

  before(async () => {
    scratch = await tempFolder("cluster");
    redis = await startRedis(scratch.file("redis"));
    broadcast = await startBroadcast("test-pattern", { name: "cluster" });
    lists.listen(0, "127.0.0.1");
    await once(lists, "listening");
    for (let n = 0; n < 3; n++) engines.push(await start(n));
  });
  const start = (n: number, more: Record<string, string> = {}) => {
    const env = (url: string) => ({
      SLUICE_STORE: redis.url,
      SLUICE_CLUSTER_ADDRESS: url,
      SLUICE_DRAIN_TIME: "3s",
      SLUICE_TRUSTED_PROXIES: "127.0.0.1",
      SLUICE_ALLOWED_HOSTS: "127.0.0.1",
      ...more,
    });
    return startEngine({ env, dataDir: scratch.file(`engine-${n}`) });
  };
  after(async () => {
    lists.close();
    await Promise.all(engines.map((engine) => engine.stop()));
    await broadcast?.stop();
    await redis?.stop();
    await scratch?.remove();
  });

  test("records of one engine are those of all", async () => {
    const [one, two, three] = engines as [EngineProcess, EngineProcess, EngineProcess];
    await call(one, "playlist_add_item", { title: "One", infohash: "1".repeat(40) });
    await call(two, "playlist_add_item", { title: "Two", infohash: "2".repeat(40) });
    const titles = async (engine: EngineProcess) =>
      (await call(engine, "playlist_get")).playlist.map(
        ({ name, title }: { name?: string; title?: string }) => name ?? title,
      );
    await until(async () => (await titles(three)).join() === "One,Two", "both items on the third engine");
    assert.equal((await call(three, "get_cluster")).engines.length, 3);
  });

  test("kill -9 of the engine that refreshes a playlist: another engine does it within 15 s", async () => {
    const client = new Redis(redis.port, "127.0.0.1");
    const holder = async (job: string) => {
      const record = await client.hget("{sluice:main}:records", `cluster/job/${job}`);
      return record === null ? "" : (JSON.parse(record) as { engine: string }).engine;
    };
    const { port } = lists.address() as AddressInfo;
    const list = {
      type: "content",
      category: "tv",
      name: "list",
      url: `http://127.0.0.1:${port}/`,
      update_interval: "0",
    };
    const id = await call(engines[0]!, "external_playlist_add", list);
    await until(async () => requests.length === 1, "the request of the first engine");
    const first = await holder(`refresh/${id}`);
    const idOf = async (engine: EngineProcess) =>
      (await call(engine, "get_cluster")).engines.find(({ is_this }: { is_this: boolean }) => is_this).id;
    const ids = await Promise.all(engines.map(idOf));
    const at = ids.indexOf(first);
    assert.ok(at >= 0, `${first} of ${ids}`);
    engines[at]!.child.kill("SIGKILL");
    await until(async () => requests.length === 2, "the request of another engine", TAKEOVER_MS);
    assert.notEqual(await holder(`refresh/${id}`), first);
    requests[1]!.end("#EXTM3U\n#EXTINF:-1,A\nhttp://tv.example/a\n");
    engines[at] = await start(at);
    await until(async () => (await holder(`refresh/${id}`)) === "", "the end of the job");
    client.disconnect();
  });

  test("one engine plays the content of players of all engines; when it is killed, another one does", async () => {
    const players = await Promise.all(engines.map((engine) => playedBy(engine, broadcast.magnet)));
    assert.equal(new Set(players).size, 1, players.join());
    const at = engines.findIndex(({ url }) => url === players[0]);
    const [victim] = engines.splice(at, 1);
    victim!.child.kill("SIGKILL");
    await once(victim!.child, "close");
    const ms = await until(
      async () => {
        const found = await Promise.all(engines.map((engine) => playedBy(engine, broadcast.magnet)));
        return new Set(found).size === 1 && found[0] !== players[0];
      },
      "another engine",
      TAKEOVER_MS,
    );
    assert.ok(ms < TAKEOVER_MS);
    const stream = await fetch(
      `${engines[0]!.url}/ace/getstream?magnet=${encodeURIComponent(broadcast.magnet)}`,
    );
    const reader = stream.body!.getReader();
    const { value } = await reader.read();
    assert.equal(value![0], 0x47, "a transport stream");
    await reader.cancel();
  });

  test("--cluster-proxy: a player that reaches one engine only watches content of another one through it", async () => {
    const entry = await start(3, { SLUICE_CLUSTER_PROXY: "on" });
    try {
      const found = await call(entry, "get_cluster");
      const playing = await playedBy(engines[0]!, broadcast.magnet);
      const { id } = found.engines.find(({ address }: { address: string }) => address === playing);
      const magnet = encodeURIComponent(broadcast.magnet);
      const prefix = `${entry.url}/engine/${id}`;
      // The URLs in JSON, manifests and redirects lead through the first engine.
      const json = await (await fetch(`${entry.url}/ace/manifest.m3u8?magnet=${magnet}&format=json`)).json();
      const urls = Object.values((json as { response: object }).response).filter((text) =>
        /^http/.test(String(text)),
      );
      assert.ok(
        urls.length >= 3 && urls.every((url) => String(url).startsWith(`${prefix}/`)),
        JSON.stringify(json),
      );
      const manifest = await fetch(`${entry.url}/ace/manifest.m3u8?magnet=${magnet}`);
      assert.ok(manifest.url.startsWith(`${prefix}/`), manifest.url);
      const segment = (await manifest.text()).split("\n").find((line) => /^[^#].*\.ts/.test(line))!;
      const bytes = new Uint8Array(await (await fetch(new URL(segment, manifest.url))).arrayBuffer());
      assert.equal(bytes[0], 0x47);
      assert.equal(bytes.length % 188, 0);
      const stream = await fetch(`${entry.url}/ace/getstream?magnet=${magnet}`);
      assert.equal(new URL(stream.url).origin, entry.url);
      const reader = stream.body!.getReader();
      assert.equal((await reader.read()).value![0], 0x47);
      const players = async () =>
        (await call(engines.find(({ url }) => url === playing)!, "get_cluster")).engines[0].players;
      const before = await players();
      // A player that hangs up ends its session on the other engine.
      await reader.cancel();
      await until(async () => (await players()) < before, "the end of the session");
      // The control interface of other engines is not reachable, and paths do not nest.
      for (const path of ["/server/api?method=get_version", "/engine/x/ace/getstream", "/ace/../server/api"])
        assert.equal((await fetch(`${prefix}${path}`)).status, 404, path);
      const unknown = `${entry.url}/engine/gone/ace/m/${broadcast.infohash}/key.m3u8`;
      const again = await fetch(unknown, { redirect: "manual" });
      assert.equal(
        again.headers.get("location"),
        `${entry.url}/ace/manifest.m3u8?infohash=${broadcast.infohash}`,
      );
    } finally {
      await entry.stop();
    }
  });

  test("SIGTERM: the engine sends its players to the other one, and ends", async () => {
    const playing = await playedBy(engines[0]!, broadcast.magnet);
    const leaving = engines.find(({ url }) => url === playing)!;
    const staying = engines.find(({ url }) => url !== playing)!;
    // Without a tracker and the DHT, the link tells the other engine where the peers are.
    await fetch(
      `${staying.url}/ace/getstream?magnet=${encodeURIComponent(broadcast.magnet)}&_hop=1&format=json`,
    );
    const manifest = await fetch(
      `${leaving.url}/ace/manifest.m3u8?magnet=${encodeURIComponent(broadcast.magnet)}`,
    );
    assert.equal(manifest.status, 200);
    await manifest.text();
    const ended = once(leaving.child, "close");
    leaving.child.kill("SIGTERM");
    await until(async () => (await fetch(`${leaving.url}/readyz`)).status === 503, "the state of draining");
    const moved = await fetch(manifest.url);
    assert.equal(new URL(moved.url).origin, staying.url, "the next manifest comes from the other engine");
    assert.match(await moved.text(), /#EXTINF/);
    const [code] = await ended;
    assert.equal(code, 0);
    assert.equal((await call(staying, "get_cluster")).engines.length, 1);
  });
});
