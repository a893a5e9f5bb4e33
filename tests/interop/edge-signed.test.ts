import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type EngineProcess, nameContent, startEngine } from "../parts/engine.ts";
import { fixture } from "../parts/media-fixtures.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { startNginxWith } from "./nginx.ts";

const { test } = await testsThatNeed("nginx");

const EXAMPLE = fileURLToPath(new URL("../../deploy/edge/nginx-signed.conf", import.meta.url));

async function exampleFor(engine: EngineProcess, port: number, folder: string): Promise<string> {
  const host = new URL(engine.url).host;
  const changes = [
    ["127.0.0.1:6878", host],
    ["/var/cache/nginx/sluice", `${folder}/cache`],
    ["listen 80;", `listen 127.0.0.1:${port};`],
    ["Host localhost:6878", `Host ${host}`],
  ] as const;
  return changes.reduce(
    (config, [from, to]) => {
      assert.ok(config.includes(from), from);
      return config.replaceAll(from, to);
    },
    await readFile(EXAMPLE, "utf8"),
  );
}

async function call(engine: EngineProcess, method: string, parameters: Record<string, string>) {
  const ask = async (query: Record<string, string>) => {
    const response = await fetch(
      `${engine.url}/server/api?${new URLSearchParams({ api_version: "3", ...query })}`,
    );
    return (await response.json()) as { result: Record<string, string> };
  };
  const { result } = await ask({ method: "get_api_access_token" });
  return (await ask({ method, token: result.token!, ...parameters })).result;
}

test("signed links behind nginx: one cache for all viewers, and no viewer without a valid link", {
  timeout: 120_000,
}, async () => {
  const scratch = await tempFolder("edge-signed");
  await mkdir(scratch.file("films"));
  await writeFile(scratch.file("films/film.mp4"), await fixture("front.mp4"));
  const torrent = await torrentOf(scratch.file("films"), 64 * 1024, scratch.file("films.torrent"));
  const seeder = await startSeeder(torrent, scratch.path);
  const engine = await startEngine({ env: { SLUICE_LINK_KEY: "0123456789abcdef0123456789abcdef" } });
  await nameContent(engine, {
    magnet: `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`,
  });
  const nginx = await startNginxWith((port) => exampleFor(engine, port, scratch.path), scratch.file("nginx"));
  const content = `/vod/${torrent.infohash}/0`;
  const sign = async (seconds: number) =>
    (await call(engine, "sign_link", { path: content, seconds: `${seconds}` })).path!;
  const get = async (path: string) => {
    const response = await fetch(`${nginx.url}${path}`);
    const body = Buffer.from(await response.arrayBuffer());
    return { status: response.status, body, cache: response.headers.get("x-cache") };
  };
  const first = await sign(600);
  const second = await sign(900);
  assert.notEqual(first, second);
  const manifest = await get(first);
  assert.equal(manifest.status, 200, String(manifest.body));
  const segment = (link: string) => link.replace("index.m3u8", "0.ts");
  const made = await get(segment(first));
  assert.deepEqual([made.status, made.cache], [200, "MISS"]);
  const cached = await get(segment(second));
  assert.deepEqual([cached.status, cached.cache], [200, "HIT"], "the cache is the same for all links");
  assert.ok(cached.body.equals(made.body));
  const wrong = [
    `${content}/index.m3u8`,
    `${content}/0.ts`,
    segment(first).replace(/\/signed\/\d/, (text) => `${text}1`),
    segment(first).replace(/\/vod\//, "x/vod/"),
    "/sluice-access",
    "/server/api?method=get_version",
  ];
  for (const path of wrong) assert.ok([403, 404].includes((await get(path)).status), path);
  const brief = await sign(2);
  assert.equal((await get(segment(brief))).status, 200);
  const until = Date.now() + 20_000;
  while ((await get(segment(brief))).status === 200)
    assert.ok(Date.now() < until, "the link expires, although its answer is cached");
  await nginx.stop();
  await engine.stop();
  await seeder.stop();
  await scratch.remove();
});
