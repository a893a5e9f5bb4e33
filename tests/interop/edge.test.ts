import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { equalBytes } from "../../src/base/bytes.ts";
import { type EngineProcess, freePort, nameContent, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { type TempFolder, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { HlsViewer } from "./hls-viewer.ts";
import { edgeExample, startNginxWith } from "./nginx.ts";

const { after, before, describe, test } = await testsThatNeed("nginx");

const VIEWERS = 40;

describe("HLS without sessions: two engines behind nginx", { timeout: 300_000 }, () => {
  let scratch: TempFolder;
  let seeder: PlainSeeder;
  let broadcast: BroadcastProcess;
  let nginx: Awaited<ReturnType<typeof startNginxWith>>;
  let vod: string;
  let live: string;
  const engines: EngineProcess[] = [];

  before(async () => {
    scratch = await tempFolder("edge");
    await mkdir(scratch.file("films"));
    await writeFile(scratch.file("films/film.mp4"), await fixture("front.mp4"));
    const torrent = await torrentOf(scratch.file("films"), 64 * 1024, scratch.file("films.torrent"));
    seeder = await startSeeder(torrent, scratch.path);
    const flags = ["--tracker-server", "own", "--http-port", `${await freePort()}`];
    broadcast = await startBroadcast("test-pattern", { name: "edge", flags });
    const film = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    for (let count = 0; count < 2; count++) {
      const engine = await startEngine({ env: { SLUICE_ALLOWED_HOSTS: "edge.test" } });
      engines.push(engine);
      // Without a tracker and the DHT, a link tells each engine once where the peers are.
      await nameContent(engine, { magnet: film });
      await fetch(`${watchUrl(engine, broadcast.magnet)}&format=json`);
    }
    vod = `/vod/${torrent.infohash}/0`;
    live = `/live/${broadcast.infohash}`;
    nginx = await startNginxWith((port) => edgeExample(engines, port, scratch.path), scratch.file("nginx"));
  });
  after(async () => {
    await nginx?.stop();
    await Promise.all(engines.map((engine) => engine.stop()));
    await broadcast?.stop();
    await seeder?.stop();
    await scratch?.remove();
  });

  test("a film: manifest and segments have the same bytes and tags on both engines, and nginx asks once for each", async () => {
    const [one, two] = engines as [EngineProcess, EngineProcess];
    const manifest = await (await fetch(`${one.url}${vod}/index.m3u8`)).text();
    const names = ["index.m3u8", ...manifest.split("\n").filter((line) => line.endsWith(".ts"))];
    assert.ok(names.length >= 3, manifest);
    for (const name of names) {
      const [mine, theirs] = await Promise.all([one, two].map(({ url }) => fetched(`${url}${vod}/${name}`)));
      assert.ok(equalBytes(mine!.bytes, theirs!.bytes), name);
      assert.equal(mine!.headers.get("etag"), theirs!.headers.get("etag"));
      const requests = Array.from({ length: VIEWERS }, () => fetched(`${nginx.url}${vod}/${name}`));
      const answers = await Promise.all(requests);
      assert.ok(answers.every(({ bytes }) => equalBytes(bytes, mine!.bytes)));
      const misses = answers.filter(({ headers }) => headers.get("x-cache") === "MISS");
      assert.equal(misses.length, 1, `${name}: one request reaches an engine`);
    }
  });

  test("a live stream: the same bytes on both engines; each segment is asked for once; the engine that serves it may die", async () => {
    const viewers = Array.from({ length: VIEWERS }, () => new HlsViewer(`${nginx.url}${live}/index.m3u8`));
    const direct = engines.map(({ url }) => new HlsViewer(`${url}${live}/index.m3u8`));
    const all = [...viewers, ...direct];
    for (const viewer of all) viewer.start();
    await Promise.all(all.map((viewer) => viewer.until(4)));
    for (const viewer of direct) viewer.stop();
    const [one, two] = direct.map(({ segments }) => segments);
    const common = [...one!.keys()].filter((number) => two!.has(number));
    assert.ok(common.length >= 3, `${[...one!.keys()]} and ${[...two!.keys()]}`);
    // The first segment of an engine may begin in its middle; all others have the bytes that the source signed.
    for (const number of common.slice(1)) {
      assert.ok(equalBytes(one!.get(number)!.bytes, two!.get(number)!.bytes), `segment ${number}`);
      assert.equal(one!.get(number)!.cacheControl, "public, max-age=60");
    }
    for (const number of viewers[0]!.segments.keys()) {
      const answers = viewers.flatMap(({ segments }) => segments.get(number) ?? []);
      const isWhole = answers.every(({ cacheControl }) => cacheControl === "public, max-age=60");
      const misses = answers.filter(({ cache }) => cache === "MISS");
      if (isWhole) assert.equal(misses.length, 1, `segment ${number}`);
    }
    const serving = enginesOf(viewers, 0)[0]!;
    const newest = Math.max(...viewers.flatMap(({ segments }) => [...segments.keys()]));
    const victim = engines.find(({ url }) => url.endsWith(serving));
    assert.ok(victim, serving);
    victim.child.kill("SIGKILL");
    await Promise.all(viewers.map((viewer) => viewer.until(viewer.segments.size + 5)));
    for (const viewer of viewers) viewer.stop();
    for (const { segments, failures } of viewers) {
      const numbers = [...segments.keys()];
      const consecutive = numbers.map((_, index) => numbers[0]! + index);
      assert.deepEqual(numbers, consecutive, `no segment is missed: ${failures}`);
    }
    const others = enginesOf(viewers, newest + 2);
    assert.ok(others.length > 0 && !others.includes(serving), `${others}`);
  });

  test("a live stream: an engine that joins begins with the segments that viewers of another one may still need", async () => {
    const known = engines.find(({ child }) => child.signalCode === null && child.exitCode === null)!;
    const joining = await startEngine({
      env: { SLUICE_ALLOWED_HOSTS: "edge.test", SLUICE_TRACKERS: new URL("/announce", broadcast.url).href },
    });
    try {
      const listed = async ({ url }: EngineProcess) => {
        const manifest = await (await fetch(`${url}${live}/index.m3u8`)).text();
        return manifest.split("\n").filter((line) => line.endsWith(".ts"));
      };
      const before = await listed(known);
      const names = await listed(joining);
      assert.ok(names.includes(before.at(-2)!), `${before} and ${names}`);
      for (const name of names) {
        const [one, other] = await Promise.all(
          [known, joining].map(({ url }) => fetched(`${url}${live}/${name}`)),
        );
        assert.ok(equalBytes(one!.bytes, other!.bytes), name);
        assert.equal(other!.headers.get("cache-control"), "public, max-age=60", name);
      }
    } finally {
      await joining.stop();
    }
  });
});

/** The engines that nginx asked for segments from number `from` on. */
function enginesOf(viewers: readonly HlsViewer[], from: number): string[] {
  const received = viewers.flatMap(({ segments }) => [...segments].filter(([number]) => number >= from));
  return [...new Set(received.map(([, { engine }]) => engine).filter((engine) => engine !== ""))];
}

async function fetched(url: string): Promise<{ bytes: Uint8Array; headers: Headers }> {
  const response = await fetch(url);
  const bytes = new Uint8Array(await response.arrayBuffer());
  assert.equal(response.status, 200, `${url}: ${new TextDecoder().decode(bytes.subarray(0, 200))}`);
  return { bytes, headers: response.headers };
}
