import { equalBytes, latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { infohashOf, type Sha1 } from "../../base/ids.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, Merkle } from "../../base/merkle.ts";
import type { Sha256 } from "../../base/signature.ts";
import type { BencodeView } from "../bencode-view.ts";
import { safeElement, safePath, UniquePaths } from "./file-names.ts";
import { isOneFileTree, readFileTree, type TreeFile } from "./file-tree.ts";
import type { InfoFile } from "./info-files.ts";
import {
  type Info,
  MAX_PIECE_BYTES,
  MAX_PIECES,
  MAX_TRANSPORT_FILE_BYTES,
  readTransportFile,
  type TransportFile,
  viewInfo,
} from "./metainfo.ts";
import { layersBytes, type PieceLayer } from "./piece-layers.ts";

const FORMAT = "transport file";

/** Returns true if an info dictionary is v2 only (BEP 52); a hybrid also has v1 piece hashes. */
export function isV2Info(info: BencodeView): boolean {
  return info.get("meta version")?.integer() === 2 && info.get("pieces") === undefined;
}

/**
 * Parses a v2-only transport file (BEP 52) and verifies every piece layer against the root of its file. If a layer is missing,
 * the result is that of `parseV2Info`: peers are asked for the layers. The infohash is the SHA-256 of the info dictionary truncated
 * to 20 bytes, the form that peers, trackers and the DHT use.
 * @param limitBytes Larger files are refused.
 * @throws DecodeError
 */
export function parseV2TransportFile(
  bytes: Uint8Array,
  sha1: Sha1,
  sha256: Sha256,
  limitBytes = MAX_TRANSPORT_FILE_BYTES,
): TransportFile {
  return readTransportFile(bytes, sha1, limitBytes, (infoBytes, view, file) => ({
    infohash: infohashOf(sha256(infoBytes).subarray(0, 20)),
    info: readV2Info(view, view.range.start, file.get("piece layers"), new Merkle(sha256)),
  }));
}

/** Parses a bare v2 info dictionary, as peers send it for a magnet. For files of more than one piece the layers are missing: the
 * piece hashes are zeros and must be requested from peers. Throws `DecodeError`. */
export function parseV2Info(infoBytes: Uint8Array, sha256: Sha256): Info {
  return readV2Info(viewInfo(infoBytes), 0, undefined, new Merkle(sha256));
}

/** Larger piece layers are not requested from peers, so that a transport file built with them stays below
 * `MAX_TRANSPORT_FILE_BYTES`. Enough for 1 TiB in pieces of 4 MiB. */
const MAX_LAYERS_BYTES = 8 * 1024 * 1024;

/** Piece hashes of each file of more than one piece, by file root (as Latin-1). */
type Layers = ReadonlyMap<string, Uint8Array>;

/** Reads the `piece layers` of a transport file. An entry that belongs to no file is an error, as in libtorrent. */
function readLayers(
  given: BencodeView | undefined,
  layers: readonly PieceLayer[],
  fail: (message: string) => DecodeError,
): Layers {
  const roots = new Set(layers.map(({ root }) => latin1Text(root)));
  const byRoot = new Map<string, Uint8Array>();
  for (const [root, value] of given?.entries() ?? []) {
    const hashes = value.bytes();
    if (!hashes) throw fail("a piece layer is not a string");
    if (!roots.has(root)) throw fail("a piece layer belongs to no file");
    if (byRoot.has(root)) throw fail("two piece layers for one root");
    byRoot.set(root, hashes);
  }
  return byRoot;
}

function readV2Info(dict: BencodeView, at: number, given: BencodeView | undefined, merkle: Merkle): Info {
  const fail = (message: string) => new DecodeError(FORMAT, at, message);
  if (!isV2Info(dict)) throw fail("not a BitTorrent v2 info dictionary");
  const pieceLength = dict.get("piece length")?.integer() ?? 0;
  const isPower = pieceLength >= LEAF_BYTES && Number.isInteger(Math.log2(pieceLength));
  if (!isPower || pieceLength > MAX_PIECE_BYTES)
    throw fail(
      `expected a power of two from ${LEAF_BYTES} to ${MAX_PIECE_BYTES} as the piece length, not ${pieceLength}`,
    );
  const nameBytes = dict.get("name.utf-8")?.bytes() ?? dict.get("name")?.bytes();
  if (!nameBytes) throw fail("no name");
  const name = safeElement(nameBytes) || "unnamed";
  const tree = readFileTree(dict, at);
  const { files, pieceCount, length } = placeFiles(
    tree,
    pieceLength,
    isOneFileTree(dict) ? name : undefined,
    fail,
  );
  if (length === 0) throw fail("the content is empty");
  const layers = layersOf(tree, files, pieceLength);
  const known = readLayers(given, layers, fail);
  const lacksLayers = layers.some(({ root }) => !known.has(latin1Text(root)));
  if (lacksLayers && layersBytes(layers) > MAX_LAYERS_BYTES)
    throw fail(
      `the piece layers have ${layersBytes(layers)} bytes; peers are asked for at most ${MAX_LAYERS_BYTES}: use a transport file that contains them`,
    );
  const pieceHashes = new Uint8Array(pieceCount * DIGEST_BYTES);
  const shortPieces = new Map<number, number>();
  for (const [i, { offset }] of files.entries()) {
    const { root, length: size } = tree[i]!;
    if (!root) continue;
    const first = offset / pieceLength;
    const hashes = size <= pieceLength ? root : known.get(latin1Text(root));
    const count = Math.ceil(size / pieceLength);
    const problem = hashes && count > 1 ? layerProblem(hashes, count, root, pieceLength, merkle) : undefined;
    if (problem !== undefined) throw fail(`${problem} (file ${i + 1})`);
    if (hashes) pieceHashes.set(hashes, first * DIGEST_BYTES);
    if (size % pieceLength !== 0) shortPieces.set(first + count - 1, size % pieceLength);
  }
  const isPrivate = dict.get("private")?.integer() === 1;
  return {
    ...{ name, pieceLength, pieceCount, length, pieceHashes, shortPieces, layers },
    ...{ lacksLayers, isPrivate, files },
  };
}

/** Returns the layers of the files of more than one piece. */
function layersOf(tree: readonly TreeFile[], files: readonly InfoFile[], pieceLength: number): PieceLayer[] {
  return tree.flatMap(({ root, length }, i) =>
    root && length > pieceLength
      ? [{ root, firstPiece: files[i]!.offset / pieceLength, pieceCount: Math.ceil(length / pieceLength) }]
      : [],
  );
}

/** Returns why `hashes` is not the piece layer of a file, or undefined if it is. */
function layerProblem(
  hashes: Uint8Array,
  count: number,
  root: Uint8Array,
  pieceLength: number,
  merkle: Merkle,
): string | undefined {
  if (hashes.length !== count * DIGEST_BYTES)
    return `expected ${count} hashes in a piece layer, not ${hashes.length / DIGEST_BYTES}`;
  const row = Array.from({ length: count }, (_, i) =>
    hashes.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES),
  );
  const isRight = equalBytes(merkle.rootOf(row, levelsFor(pieceLength / LEAF_BYTES)), root);
  return isRight ? undefined : "a piece layer does not match the root of its file";
}

/** Computes the file offsets: each file starts at a piece boundary, and the gaps hold no data. */
function placeFiles(
  tree: readonly TreeFile[],
  pieceLength: number,
  onlyName: string | undefined,
  fail: (message: string) => DecodeError,
): { files: InfoFile[]; pieceCount: number; length: number } {
  const paths = new UniquePaths();
  const files: InfoFile[] = [];
  let pieceCount = 0;
  let length = 0;
  for (const [i, { path, length: size, isSymlink }] of tree.entries()) {
    const shown = onlyName === undefined ? paths.add(safePath(path, `file ${i + 1}`)) : [onlyName];
    const offset = pieceCount * pieceLength;
    files.push({ path: shown, length: size, offset, isPad: false, isSymlink });
    pieceCount += Math.ceil(size / pieceLength);
    if (size > 0) length = offset + size;
    if (pieceCount > MAX_PIECES) throw fail(`more than ${MAX_PIECES} pieces`);
  }
  return { files, pieceCount, length };
}
