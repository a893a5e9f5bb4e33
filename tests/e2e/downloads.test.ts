import assert from "node:assert/strict";
import { startEngine } from "../parts/engine.ts";
import { testsThatNeed } from "../parts/needs.ts";
import { startSeeder } from "../parts/plain-seeder.ts";
import { randomFile, sha1OfFile, sha1OfStream, tempFolder, torrentOf } from "../parts/torrent-files.ts";

const { test } = await testsThatNeed("time");

const MIB = 1024 * 1024;
const TIME = { timeout: 120_000 };

test(
  "a download is fetched without a player, survives restarts and a full cache, and is deleted with its data",
  TIME,
  async (t) => {
    const scratch = await tempFolder("downloads");
    t.after(() => scratch.remove());
    const path = scratch.file("film.bin");
    await randomFile(path, 6 * MIB + 77);
    const film = await torrentOf(path, 256 * 1024, scratch.file("film.torrent"));
    const seed = await startSeeder(film, scratch.path);
    t.after(() => seed.stop());
    const dataDir = scratch.file("data");
    const env = { SLUICE_CACHE_LIMIT: "32MB" };
    const magnet = `magnet:?xt=urn:btih:${film.infohash}&x.pe=127.0.0.1:${seed.port}`;

    const first = await startEngine({ dataDir, env });
    const added = (await control(first, "download_add", { magnet })).result;
    assert.deepEqual([added.infohash, added.size, added.files], [film.infohash, 6 * MIB + 77, null]);
    await control(first, "transfer_set_limits", { infohash: film.infohash, download_limit: "1" });
    await control(first, "transfer_set_limits", { infohash: film.infohash });
    await completed(first);
    assert.match(
      (await control(first, "cache_delete", { infohash: film.infohash })).error.message,
      /open|download/,
    );
    await first.stop();
    await seed.stop();

    const second = await startEngine({ dataDir, env });
    t.after(() => second.stop());
    assert.equal((await control(second, "download_list")).result[0].state, "complete");
    assert.equal((await control(second, "cache_clear")).result, 0);
    const response = await fetch(`${second.url}/files/${film.infohash}/0/film.bin`);
    assert.deepEqual(await sha1OfStream(response.body!), {
      sha1: await sha1OfFile(path),
      bytes: 6 * MIB + 77,
    });
    assert.equal((await control(second, "download_delete", { infohash: film.infohash })).result, "ok");
    assert.deepEqual((await control(second, "get_cache")).result.contents, []);
    assert.deepEqual((await control(second, "download_list")).result, []);
  },
);

async function completed(engine: { url: string }): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const [download] = (await control(engine, "download_list")).result;
    assert.notEqual(download.state, "failed", download.problem);
    if (download.state === "complete") return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail("the download is not complete after a minute");
}

/** Calls a control method with the token of the engine. */
async function control(engine: { url: string }, method: string, parameters: Record<string, string> = {}) {
  const call = async (query: Record<string, string>) => {
    const response = await fetch(
      `${engine.url}/server/api?${new URLSearchParams({ api_version: "3", ...query })}`,
    );
    // biome-ignore lint/suspicious/noExplicitAny: the tests read members by name.
    return (await response.json()) as any;
  };
  const { token } = (await call({ method: "get_api_access_token" })).result;
  return call({ method, token, ...parameters });
}
