import assert from "node:assert/strict";
import { test } from "node:test";
import { SeedMap } from "../../../src/transfer/web-seeds/seed-map.ts";
import { parseTransportFile } from "../../../src/wire/torrent/metainfo.ts";
import { webSeedPaths } from "../../../src/wire/torrent/web-seed-paths.ts";
import { makeTorrent, sha1 } from "../../wire/make-torrent.ts";

const PIECE = 1024;
const bytes = (length: number) => new Uint8Array(length);
const MADE = makeTorrent({
  name: "top",
  pieceLength: PIECE,
  files: [
    { path: "a", bytes: bytes(1500) },
    { path: "none", bytes: bytes(0) },
    { path: ".pad/36", bytes: bytes(36), attr: "p" },
    { path: "b", bytes: bytes(2000) },
    { path: "..", bytes: bytes(512) },
  ],
});
const FILE = parseTransportFile(MADE.bytes, sha1);
const map = (kind: "files" | "pieces" = "files") =>
  new SeedMap(FILE, { url: "http://w.example/d/", kind }, webSeedPaths(FILE.infoBytes));
const held = (seed: SeedMap) => Array.from({ length: 4 }, (_, i) => Number(seed.pieces().has(i))).join("");

test("SeedMap.at: each byte belongs to exactly one stretch", () => {
  const seed = map();
  const kinds = [0, 1499, 1500, 1535, 1536, 3535, 3536].map((offset) => {
    const stretch = seed.at(offset);
    assert.ok(stretch.start <= offset && offset < stretch.end, `${offset}`);
    return `${stretch.kind} ${stretch.fileIndex}`;
  });
  assert.deepEqual(kinds, ["file 0", "file 0", "zeros 2", "zeros 2", "file 3", "file 3", "file 4"]);
  assert.equal(seed.url(seed.at(1536), 1536, 1600), "http://w.example/d/top/b");
});

test("SeedMap.pieces: omits pieces of files that are missing or have no valid path", () => {
  const seed = map();
  assert.equal(held(seed), "1110", "the last file is called ..");
  seed.markMissing(0);
  assert.equal(held(seed), "0010");
  seed.markMissing(3);
  assert.equal(held(seed), "0000");
});

test("SeedMap: each piece is a stretch (BEP 17)", () => {
  const seed = map("pieces");
  assert.equal(held(seed), "1111");
  const stretch = seed.at(3100);
  assert.deepEqual([stretch.kind, stretch.start, stretch.end], ["parts", 3072, 4048]);
  assert.match(seed.url(stretch, 3100, 3200), /&piece=3&ranges=28-127$/);
});
