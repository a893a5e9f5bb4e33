import assert from "node:assert/strict";
import { test } from "node:test";
import type { Infohash } from "../../src/base/ids.ts";
import type { CacheContents } from "../../src/storage/cache-contract.ts";
import { fakeApp } from "./client.ts";

const hash = (digit: string) => digit.repeat(40) as Infohash;

/** An app whose disk cache has one open content and some that are not open. */
function cacheApp(cache?: Partial<CacheContents>, closed = 2) {
  const app = fakeApp();
  const removed: Infohash[] = [];
  const contents = Array.from({ length: closed }, (_, i) => ({
    infohash: i.toString(16).padStart(40, "0") as Infohash,
    bytes: 100 + i,
    lastRead: i,
    isOpen: false,
    isKept: false,
  }));
  contents.push({ infohash: hash("a"), bytes: 50, lastRead: 1_800_000_000, isOpen: true, isKept: false });
  app.transfers.cache = {
    isOwner: true,
    contents: () => contents,
    async removeContents(infohashes) {
      removed.push(...infohashes);
      return 77;
    },
    ...cache,
  };
  const control = async (method: string, parameters: Record<string, string> = {}) => {
    const { token } = (await app.json("/server/api?method=get_api_access_token&api_version=3")).result;
    return app.json(`/server/api?${new URLSearchParams({ api_version: "3", method, token, ...parameters })}`);
  };
  return { ...app, control, removed };
}

test("get_cache: lists the largest contents first, at most 200, and their number", async () => {
  const { result } = await cacheApp({}, 2).control("get_cache");
  assert.equal(result.state, "own");
  assert.equal(result.count, 3);
  assert.deepEqual(result.contents, [
    { infohash: "1".padStart(40, "0"), name: null, size: 101, last_use: 1, is_kept: false, is_open: false },
    { infohash: hash("0"), name: null, size: 100, last_use: null, is_kept: false, is_open: false },
    { infohash: hash("a"), name: null, size: 50, last_use: 1_800_000_000, is_kept: false, is_open: true },
  ]);
  const many = (await cacheApp({}, 300).control("get_cache")).result;
  assert.deepEqual([many.count, many.contents.length, many.contents[0].size], [301, 200, 399]);
});

test("cache_delete: deletes one content, unless it is open or unknown", async () => {
  const { control, removed } = cacheApp();
  assert.equal((await control("cache_delete", { infohash: hash("0") })).result, 77);
  assert.match((await control("cache_delete", { infohash: hash("a") })).error.message, /is open/);
  assert.match((await control("cache_delete", { infohash: hash("b") })).error.message, /no such content/);
  assert.equal((await control("cache_delete", { infohash: "../x" })).error.code, 103);
  assert.deepEqual(removed, [hash("0")]);
});

test("cache_clear: deletes all content that is not open", async () => {
  const { control, removed } = cacheApp();
  assert.equal((await control("cache_clear")).result, 77);
  assert.deepEqual(removed, [hash("0"), "1".padStart(40, "0")]);
});

test("get_cache, cache_clear: a cache that is off, and one of another engine", async () => {
  const off = fakeApp();
  const { token } = (await off.json("/server/api?method=get_api_access_token&api_version=3")).result;
  const of = async (method: string) => off.json(`/server/api?api_version=3&method=${method}&token=${token}`);
  assert.equal((await of("get_cache")).result.state, "off");
  assert.equal((await of("cache_clear")).result, 0);
  const shared = cacheApp({ isOwner: false, contents: () => [] });
  assert.equal((await shared.control("get_cache")).result.state, "shared");
  assert.match((await shared.control("cache_clear")).error.message, /another engine/);
});
