import assert from "node:assert/strict";
import { test } from "node:test";
import { latin1Bytes, latin1Text, toHex } from "../../src/base/bytes.ts";
import { DecodeError } from "../../src/base/errors.ts";
import { pieceBytesOf, pieceCheck } from "../../src/protocol/swarm/piece-check.ts";
import { type BencodeInput, bencodeDict } from "../../src/wire/bencode-encode.ts";
import { viewBencode } from "../../src/wire/bencode-view.ts";
import { makeTransportFile, parseInfo } from "../../src/wire/torrent/metainfo.ts";
import { pieceLayersByRoot } from "../../src/wire/torrent/piece-layers.ts";
import { isV2Info, parseV2Info, parseV2TransportFile } from "../../src/wire/torrent/v2-metainfo.ts";
import { webSeedPaths } from "../../src/wire/torrent/web-seed-paths.ts";
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

test("parseV2TransportFile: reads files, offsets, lengths and infohash (BEP 52)", () => {
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

test("pieceCheck: accepts v2 pieces and refuses changed ones", () => {
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

test("parseV2TransportFile: a single file that has the name of the content is not in a folder", () => {
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
const SOME_ROOT = new Uint8Array(32).fill(1);
const treeOf = (leaf: Readonly<Record<string, BencodeInput>>, name = "a") => ({
  info: { "file tree": bencodeDict({ [name]: bencodeDict({ "": bencodeDict(leaf) }) }) },
});
const extraLayer = (key: string, value: BencodeInput) => ({
  extra: { "piece layers": new Map([...GOOD.layers, [key, value]]) },
});
const layersWith = (layer: Uint8Array) => ({
  extra: { "piece layers": new Map([...GOOD.layers, [ROOT, layer]]) },
});
const REFUSED: readonly (readonly [string, Changes, RegExp])[] = [
  ["a piece layer that is not a string", extraLayer(ROOT, 512), /layer is not a string/],
  ["a piece layer that belongs to no file", extraLayer("x".repeat(32), LAYER), /belongs to no file/],
  ["a piece layer with a key that is too long", extraLayer(`a${ROOT}`, LAYER), /belongs to no file/],
  ["a root of zeros", treeOf({ length: 5, "pieces root": new Uint8Array(32) }), /a pieces root of zeros/],
  ["a padding file", treeOf({ attr: "p", length: 5, "pieces root": SOME_ROOT }), /a padding file/],
  ["an empty file name", treeOf({ length: 5, "pieces root": SOME_ROOT }, ""), /an empty name/],
  [
    "a piece layer that is too short",
    layersWith(LAYER.subarray(32)),
    /expected 4 hashes in a piece layer, not 3/,
  ],
  ["a changed piece layer", layersWith(LAYER.map((byte) => byte ^ 1)), /does not match the root/],
  ["a piece length that is not a power of two", { info: { "piece length": 100_000 } }, /power of two/],
  ["a piece length below the size of a leaf", { info: { "piece length": 8192 } }, /power of two/],
  ["a huge piece length", { info: { "piece length": 2 ** 26 } }, /power of two/],
  ["metadata without a name", { info: { name: undefined } }, /no name/],
  ["another meta version", { info: { "meta version": 3 } }, /not a BitTorrent v2/],
  [
    "metadata without content",
    { info: { "file tree": bencodeDict({ a: bencodeDict({ "": bencodeDict({ length: 0 }) }) }) } },
    /the content is empty/,
  ],
  [
    "too many pieces",
    {
      info: {
        "file tree": bencodeDict({
          a: bencodeDict({ "": bencodeDict({ length: 2 ** 40, "pieces root": SOME_ROOT }) }),
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

test("parseV2TransportFile: a file that lacks piece layers is read like metadata of a magnet", () => {
  for (const layers of [undefined, new Map([...GOOD.layers].slice(1)), new Map()]) {
    const { bytes } = makeV2Torrent({
      name: "top",
      files: FILES,
      pieceLength: PIECE,
      extra: { announce: "http://t.example/", "piece layers": layers },
    });
    const file = read(bytes);
    assert.equal(file.info.lacksLayers, true);
    assert.equal(file.infohash, GOOD.infohash);
    assert.deepEqual(file.info.layers, read(GOOD.bytes).info.layers);
    assert.deepEqual(file.trackers, [["http://t.example/"]]);
  }
});

test("parseV2TransportFile: accepts bytes after the end, but only canonical metadata", () => {
  const text = latin1Text(GOOD.bytes);
  assert.equal(read(latin1Bytes(`${text}\n`)).infohash, GOOD.infohash);
  const name = text.replace("4:name3:top", "").replace("d9:file tree", "d4:name3:top9:file tree");
  assert.equal(name.length, text.length);
  assert.throws(() => read(latin1Bytes(name)), /keys are not sorted/);
  assert.throws(
    () => read(latin1Bytes(text.replace("12:meta versioni2e", "12:meta versioni02e"))),
    /leading zero/,
  );
});

test("parseV2Info: metadata is complete if no file has more than one piece", () => {
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

test("parseV2Info: lists the layers of larger files, and reports that their hashes are missing", () => {
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

test("makeTransportFile: rebuilds the original transport file from metadata and layers", () => {
  const { info } = read(GOOD.bytes);
  const layers = pieceLayersByRoot(info.layers!, info.pieceHashes);
  const file = read(makeTransportFile(GOOD.infoBytes, [["http://t.example/a"]], layers));
  assert.deepEqual(file.info, info);
  assert.equal(file.infohash, GOOD.infohash);
  assert.deepEqual(file.trackers, [["http://t.example/a"]]);
});

test("parseV2Info: refuses metadata whose missing layers are larger than the engine requests from peers", () => {
  // Maximum number of pieces of one layer that the engine requests.
  const most = (8_388_608 - 48) / 32;
  for (const [pieces, isRefused] of [
    [Math.floor(most), false],
    [Math.floor(most) + 1, true],
  ] as const) {
    const leaf = bencodeDict({ length: pieces * PIECE, "pieces root": SOME_ROOT });
    const { infoBytes } = makeV2Torrent({
      name: "top",
      files: {},
      pieceLength: PIECE,
      info: { "file tree": bencodeDict({ a: bencodeDict({ "": leaf }) }) },
    });
    const parse = () => parseV2Info(infoBytes, sha256);
    if (isRefused) assert.throws(parse, /at most 8388608: use a transport file/);
    else assert.equal(parse().pieceCount, pieces);
  }
});

test("isV2Info: true for v2 only; parseInfo refuses v2 with a clear message", () => {
  assert.equal(isV2Info(viewBencode(GOOD.infoBytes)), true);
  assert.throws(() => parseInfo(GOOD.infoBytes), /v2 only/);
});
