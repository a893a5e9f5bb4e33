import assert from "node:assert/strict";
import { test } from "node:test";
import { parseInfohash } from "../../src/base/ids.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";
import { webSeedFileUrl, webSeedPaths, webSeedPieceUrl } from "../../src/wire/torrent/web-seed-paths.ts";
import { MAX_WEB_SEEDS, readWebSeeds } from "../../src/wire/torrent/web-seeds.ts";

const read = (members: Readonly<Record<string, BencodeInput>>) =>
  readWebSeeds(viewBencode(encodeBencode(bencodeDict(members)))).map(({ url, kind }) => `${kind} ${url}`);

test("readWebSeeds: one string, lists, both kinds, without duplicates", () => {
  assert.deepEqual(read({ "url-list": "http://w.example/f" }), ["files http://w.example/f"]);
  assert.deepEqual(
    read({ "url-list": ["http://a.example/x", "HTTP://A.example/x"], httpseeds: ["https://b.example/s"] }),
    ["files http://a.example/x", "pieces https://b.example/s"],
  );
  assert.deepEqual(read({ "url-list": " http://a.example/a b " }), ["files http://a.example/a%20b"]);
});

test("readWebSeeds: skips entries that are not http URLs", () => {
  const bad = ["ftp://a.example/", "", "file:///etc/passwd", 5, ["http://x.example/"], "http://"];
  assert.deepEqual(read({ "url-list": [...bad, "http://ok.example/"] }), ["files http://ok.example/"]);
  assert.deepEqual(read({ "url-list": 7, httpseeds: new Map() }), []);
  const many = Array.from({ length: 100 }, (_, i) => `http://a.example/${i}`);
  assert.equal(read({ "url-list": many }).length, MAX_WEB_SEEDS);
});

const info = (members: Readonly<Record<string, BencodeInput>>) => encodeBencode(bencodeDict(members));

test("webSeedPaths: percent-encoded names; undefined for unsafe names", () => {
  assert.deepEqual(webSeedPaths(info({ length: 5, name: "a b.mp4", pieces: "" })), ["a%20b.mp4"]);
  const file = (...path: string[]) => bencodeDict({ length: 1, path });
  const files = [file("a", "\xc3\xa9#?.mkv"), file("..", "x"), file("", "x"), file("a/../b"), file(".")];
  assert.deepEqual(webSeedPaths(info({ files, name: "top", pieces: "" })), [
    "top/a/%C3%A9%23%3F.mkv",
    undefined,
    undefined,
    "top/a%2F..%2Fb",
    undefined,
  ]);
  assert.deepEqual(webSeedPaths(info({ files, name: "..", pieces: "" })).filter(Boolean), []);
});

// URL of the web seed, path, single file, expected URL (BEP 19).
const URLS: readonly (readonly [string, string, boolean, string])[] = [
  ["http://w.example/film.mp4", "other.mp4", true, "http://w.example/film.mp4"],
  ["http://w.example/d/", "film.mp4", true, "http://w.example/d/film.mp4"],
  ["http://w.example/d/", "top/a.mp4", false, "http://w.example/d/top/a.mp4"],
  ["http://w.example/d", "top/a.mp4", false, "http://w.example/d/top/a.mp4"],
];

test("webSeedFileUrl: folders and files", () => {
  for (const [url, path, isOne, asked] of URLS) assert.equal(webSeedFileUrl(url, path, isOne), asked);
});

test("webSeedPieceUrl: infohash, piece and inclusive range (BEP 17)", () => {
  const infohash = parseInfohash("00ff".padEnd(40, "a"))!;
  assert.equal(
    webSeedPieceUrl("http://w.example/s?x=1", infohash, 7, 0, 16_384),
    `http://w.example/s?x=1&info_hash=%00%FF${"%AA".repeat(18)}&piece=7&ranges=0-16383`,
  );
});
