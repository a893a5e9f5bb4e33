import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Text, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { pieceBytesOf, pieceCheck } from "../../src/swarm/piece-check.ts";
import { type BencodeInput, bencodeDict } from "../../src/wire/bencode-encode.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";
import { makeTransportFile, parseInfo } from "../../src/wire/metainfo.ts";
import { piecesByRoot } from "../../src/wire/piece-layers.ts";
import { isV2Info, MAX_LAYERS_BYTES, parseV2Info, parseV2TransportFile } from "../../src/wire/v2-metainfo.ts";
import { webSeedPaths } from "../../src/wire/web-seed-paths.ts";
import { sha1, sha256 } from "./make-torrent.ts";
import { makeV2Torrent } from "./make-v2-torrent.ts";

const PIECE = 64 * 1024;
const bytesOf = (length: number, seed: number) =>
  Uint8Array.from({ length }, (_, i) => Math.imul(i + 7919 * seed, 0x9e3779b1) >>> 13);
const FILES = {
  a: bytesOf(3 * PIECE + 5000, 3),
  "sub/b": bytesOf(PIECE, 5),
  "sub/c": new Uint8Array(0),
  "sub/d": bytesOf(20_000, 7),
  z: bytesOf(4 * PIECE, 11),
};
const read = (bytes: Uint8Array) => parseV2TransportFile(bytes, sha1, sha256);

test("parseV2TransportFile: files, places, lengths and infohash (BEP 52)", () => {
  const made = makeV2Torrent({
    name: "top",
    files: FILES,
    pieceLength: PIECE,
    extra: { announce: "http://t.example/" },
  });
  const file = read(made.bytes);
  assert.equal(file.infohash, made.infohash);
  assert.equal(file.infohash, toHex(sha256(made.infoBytes)).slice(0, 40));
  assert.deepEqual(file.trackers, [["http://t.example/"]]);
  const { name, pieceCount, length, shortPieces, files } = file.info;
  assert.deepEqual({ name, pieceCount, length }, { name: "top", pieceCount: 10, length: 10 * PIECE });
  assert.deepEqual(
    [...shortPieces!],
    [
      [3, 5000],
      [5, 20_000],
    ],
  );
  assert.deepEqual(
    files.map(({ path, offset, length: size }) => [path.join("/"), offset / PIECE, size]),
    [
      ["a", 0, 3 * PIECE + 5000],
      ["sub/b", 4, PIECE],
      ["sub/c", 5, 0],
      ["sub/d", 5, 20_000],
      ["z", 6, 4 * PIECE],
    ],
  );
  assert.deepEqual(webSeedPaths(file.infoBytes), ["top/a", "top/sub/b", "top/sub/c", "top/sub/d", "top/z"]);
});

test("pieceCheck: the pieces of version 2 are right as they are, and no others are", () => {
  const { info } = read(makeV2Torrent({ name: "top", files: FILES, pieceLength: PIECE }).bytes);
  const isRight = pieceCheck(sha1, sha256);
  for (const { path, offset } of info.files) {
    const bytes = FILES[path.join("/") as keyof typeof FILES];
    for (let at = 0; at < bytes.length; at += PIECE) {
      const piece = (offset + at) / PIECE;
      const part = bytes.subarray(at, at + PIECE);
      assert.equal(pieceBytesOf(info, piece), part.length);
      assert.equal(isRight(info, piece, part), true, `piece ${piece}`);
      assert.equal(isRight(info, (piece + 1) % info.pieceCount, part), false);
      for (const changed of [0, part.length - 1]) {
        const wrong = part.slice();
        wrong[changed]! ^= 1;
        assert.equal(isRight(info, piece, wrong), false, `piece ${piece}, byte ${changed}`);
      }
    }
  }
});

test("parseV2TransportFile: one file that has the name of the content", () => {
  const { info, infoBytes } = read(
    makeV2Torrent({ name: "film", files: { film: FILES.a }, pieceLength: PIECE }).bytes,
  );
  assert.deepEqual(info.files[0]?.path, ["film"]);
  assert.deepEqual(webSeedPaths(infoBytes), ["film"]);
  const other = read(makeV2Torrent({ name: "top", files: { film: FILES.a }, pieceLength: PIECE }).bytes);
  assert.deepEqual(webSeedPaths(other.infoBytes), ["top/film"]);
});

type Changes = {
  info?: Readonly<Record<string, BencodeInput | undefined>>;
  extra?: Readonly<Record<string, BencodeInput | undefined>>;
};
const GOOD = makeV2Torrent({ name: "top", files: FILES, pieceLength: PIECE });
const [[ROOT, LAYER]] = [...GOOD.layers] as [[string, Uint8Array]];
const layersWith = (layer: Uint8Array) => ({
  extra: { "piece layers": new Map([...GOOD.layers, [ROOT, layer]]) },
});
const REFUSED: readonly (readonly [string, Changes, RegExp])[] = [
  ["no piece layers", { extra: { "piece layers": undefined } }, /v2 without its piece layers.*file 1/],
  [
    "a piece layer that is too short",
    layersWith(LAYER.subarray(32)),
    /expected 4 hashes in a piece layer, not 3/,
  ],
  ["a piece layer of others", layersWith(LAYER.map((byte) => byte ^ 1)), /does not fit the root/],
  ["a piece length that is no power of two", { info: { "piece length": 100_000 } }, /power of two/],
  ["a piece length below a leaf", { info: { "piece length": 8192 } }, /power of two/],
  ["a huge piece length", { info: { "piece length": 2 ** 26 } }, /power of two/],
  ["no name", { info: { name: undefined } }, /no name/],
  ["another version", { info: { "meta version": 3 } }, /not of version 2/],
  [
    "no content",
    { info: { "file tree": bencodeDict({ a: bencodeDict({ "": bencodeDict({ length: 0 }) }) }) } },
    /no content/,
  ],
  [
    "too many pieces",
    {
      info: {
        "file tree": bencodeDict({
          a: bencodeDict({ "": bencodeDict({ length: 2 ** 40, "pieces root": new Uint8Array(32) }) }),
        }),
      },
    },
    /more than 2097152 pieces/,
  ],
];

for (const [what, changes, message] of REFUSED) {
  test(`parseV2TransportFile: refuses ${what}`, () => {
    const made = makeV2Torrent({ name: "top", files: FILES, pieceLength: PIECE, ...changes });
    assert.throws(
      () => read(made.bytes),
      (error) => error instanceof DecodeError && message.test(error.message),
    );
  });
}

test("parseV2Info: the metadata alone is enough where no file has two pieces", () => {
  const small = makeV2Torrent({
    name: "top",
    files: { a: FILES["sub/b"], b: FILES["sub/d"] },
    pieceLength: PIECE,
  });
  const { pieceHashes, pieceCount } = parseV2Info(small.infoBytes, sha256);
  assert.equal(pieceCount, 2);
  assert.deepEqual(pieceHashes, read(small.bytes).info.pieceHashes);
  assert.equal(parseV2Info(small.infoBytes, sha256).lacksLayers, false);
});

test("parseV2Info: of files of more pieces it says where their hashes belong, and that they are lacking", () => {
  const info = parseV2Info(GOOD.infoBytes, sha256);
  const whole = read(GOOD.bytes).info;
  assert.equal(info.lacksLayers, true);
  assert.equal(whole.lacksLayers, false);
  assert.deepEqual(info.layers, whole.layers);
  const [a, z] = info.layers!;
  assert.deepEqual([a!.firstPiece, a!.pieceCount, z!.firstPiece, z!.pieceCount], [0, 4, 6, 4]);
  assert.equal(latin1Text(a!.root), ROOT);
  const isOfLayer = (_: number, i: number) => i < 4 * 32 || i >= 6 * 32;
  assert.ok(info.pieceHashes.filter(isOfLayer).every((byte) => byte === 0));
  assert.deepEqual(info.pieceHashes.subarray(4 * 32, 6 * 32), whole.pieceHashes.subarray(4 * 32, 6 * 32));
});

test("makeTransportFile: with the layers around the metadata it is the whole transport file again", () => {
  const { info } = read(GOOD.bytes);
  const layers = piecesByRoot(info.layers!, info.pieceHashes);
  const file = read(makeTransportFile(GOOD.infoBytes, [["http://t.example/a"]], layers));
  assert.deepEqual(file.info, info);
  assert.equal(file.infohash, GOOD.infohash);
  assert.deepEqual(file.trackers, [["http://t.example/a"]]);
});

test("parseV2Info: refuses metadata that lacks more layers than peers are asked for", () => {
  // With the key of one layer these are the most pieces whose hashes fit.
  const most = (MAX_LAYERS_BYTES - 48) / 32;
  for (const [pieces, isRefused] of [
    [Math.floor(most), false],
    [Math.floor(most) + 1, true],
  ] as const) {
    const leaf = bencodeDict({ length: pieces * PIECE, "pieces root": new Uint8Array(32) });
    const { infoBytes } = makeV2Torrent({
      name: "top",
      files: {},
      pieceLength: PIECE,
      info: { "file tree": bencodeDict({ a: bencodeDict({ "": leaf }) }) },
    });
    const parse = () => parseV2Info(infoBytes, sha256);
    if (isRefused) assert.throws(parse, /8388608 bytes at most.*play it from its transport file/);
    else assert.equal(parse().pieceCount, pieces);
  }
});

test("isV2Info: version 2 alone; parseInfo says so by name", () => {
  assert.equal(isV2Info(viewBencode(GOOD.infoBytes)), true);
  assert.throws(() => parseInfo(GOOD.infoBytes), /v2 only/);
});
