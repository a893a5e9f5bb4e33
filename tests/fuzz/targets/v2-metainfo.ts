import { assert } from "../../../src/base/assert.ts";
import { latin1Bytes } from "../../../src/base/bytes.ts";
import { pieceBytesOf } from "../../../src/protocol/swarm/piece-check.ts";
import { parseInfo } from "../../../src/wire/torrent/metainfo.ts";
import { parseV2TransportFile } from "../../../src/wire/torrent/v2-metainfo.ts";
import { webSeedPaths } from "../../../src/wire/torrent/web-seed-paths.ts";
import { sha256 } from "../../wire/make-torrent.ts";
import { makeV2Torrent } from "../../wire/make-v2-torrent.ts";
import type { FuzzTarget } from "../contract.ts";
import { repeated } from "../extremes.ts";
import { mutateBencode } from "../mutate-bencode.ts";

const PIECE = 16_384;
const MADE = [
  makeV2Torrent({ name: "film.mp4", files: { "film.mp4": new Uint8Array(40_000) }, pieceLength: PIECE }),
  makeV2Torrent({
    name: "top",
    files: { a: new Uint8Array(5), "sub/b": new Uint8Array(2 * PIECE), "sub/c": new Uint8Array(0) },
    pieceLength: PIECE,
    extra: { "url-list": "http://w.example/", httpseeds: ["http://w.example/s"], comment: "x" },
  }),
];
const transportFile: FuzzTarget = {
  name: "v2-transport-file",
  corpus: () => MADE.map(({ bytes }) => bytes),
  words: ["0:d6:lengthi1ee", "9:file treed", "12:piece layersd", "6:lengthi9e", "2:..", "i16384e"].map(
    latin1Bytes,
  ),
  mutate: mutateBencode,
  run(bytes) {
    const file = parseV2TransportFile(bytes, () => new Uint8Array(20), sha256);
    const { info } = file;
    assert(info.pieceHashes.length === 32 * info.pieceCount, "a hash for each piece");
    let pieces = 0;
    for (const { offset, length, path } of info.files) {
      assert(offset === pieces * info.pieceLength && length >= 0, "files begin with pieces");
      assert(path.length > 0 && !path.includes("..") && !path.includes(""), "a path that is safe");
      pieces += Math.ceil(length / info.pieceLength);
    }
    assert(pieces === info.pieceCount, "files make up the pieces");
    for (const [piece] of info.shortPieces!)
      assert(piece < pieces && pieceBytesOf(info, piece) > 0, "short pieces are not empty");
    checkPaths(file.infoBytes, info.files.length);
    return file;
  },
};

const HYBRID = latin1Bytes(
  "d9:file treed1:ad0:d6:lengthi5e11:pieces root32:00000000000000000000000000000000eee6:lengthi5e" +
    "12:meta versioni2e4:name1:a12:piece lengthi16384e6:pieces20:00000000000000000000e",
);

const hybrid: FuzzTarget = {
  name: "hybrid-info",
  corpus: () => [HYBRID],
  extremes: () => [
    repeated("d9:file treed", "1:ad", ""),
    repeated("d9:file treed1:ad0:d6:lengthi0eee", "1:bd0:d6:lengthi0eee", `e${HYBRID_TAIL}`),
  ],
  mutate: mutateBencode,
  run(bytes) {
    const info = parseInfo(bytes);
    checkPaths(bytes, info.files.length);
    return info;
  },
};

const HYBRID_TAIL =
  "6:lengthi5e12:meta versioni2e4:name1:a12:piece lengthi16384e6:pieces20:00000000000000000000e";

/** Checks that paths of a web seed never leave its folder. */
function checkPaths(infoBytes: Uint8Array, files: number): void {
  const paths = webSeedPaths(infoBytes);
  assert(paths.length === files, "a place for each file");
  for (const path of paths) {
    if (path === undefined) continue;
    assert(/^[A-Za-z0-9._~%/-]+$/.test(path), `escaped: ${path}`);
    assert(!path.split("/").some((element) => /^\.*$/.test(element)), `stays below: ${path}`);
  }
}

export const targets = [transportFile, hybrid];
