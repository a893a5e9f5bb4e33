import { equalBytes, latin1Text, toHex } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type ContentId, infohashOf, type Sha1 } from "../base/ids.ts";
import { DIGEST_BYTES, LEAF_BYTES, levelsFor, Merkle } from "../base/merkle.ts";
import type { Sha256 } from "../base/signature.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { type BencodeView, viewBencode } from "./bencode-view.ts";
import { safeElement, safePath, UniquePaths } from "./file-names.ts";
import { isOneFileTree, readFileTree, type TreeFile } from "./file-tree.ts";
import {
  type Info,
  type InfoFile,
  MAX_PIECE_BYTES,
  MAX_PIECES,
  MAX_TRANSPORT_FILE_BYTES,
  readTrackers,
  type TransportFile,
} from "./metainfo.ts";
import { layersBytes, type PieceLayer } from "./piece-layers.ts";
import { readWebSeeds } from "./web-seeds.ts";

const FORMAT = "transport file";

/** Whether an info dictionary is of version 2 alone (BEP 52): a hybrid has piece hashes of version 1 besides. */
export function isV2Info(info: BencodeView): boolean {
  return info.get("meta version")?.integer() === 2 && info.get("pieces") === undefined;
}

/**
 * Reads a transport file of version 2 alone (BEP 52). Its infohash is the SHA-256 of the info dictionary, cut to 20 bytes, as
 * peers, trackers and the DHT know it. Every piece layer is held against the root of its file. Throws `DecodeError`.
 */
export function parseV2TransportFile(
  bytes: Uint8Array,
  sha1: Sha1,
  sha256: Sha256,
  limitBytes = MAX_TRANSPORT_FILE_BYTES,
): TransportFile {
  if (bytes.length > limitBytes) throw new DecodeError(FORMAT, limitBytes, `larger than ${limitBytes} bytes`);
  const file = viewBencode(bytes);
  const infoView = file.get("info");
  if (!infoView) throw new DecodeError(FORMAT, 0, "no info dictionary");
  const { start, end } = infoView.range;
  const infoBytes = bytes.subarray(start, end);
  const comment = (file.get("comment.utf-8") ?? file.get("comment"))?.bytes();
  return {
    infohash: infohashOf(sha256(infoBytes).subarray(0, 20)),
    contentId: toHex(sha1(bytes)) as ContentId,
    info: readV2Info(infoView, start, readLayers(file.get("piece layers")), new Merkle(sha256)),
    infoBytes,
    bytes,
    trackers: readTrackers(file),
    webSeeds: readWebSeeds(file),
    comment: comment && decodeUtf8(comment.subarray(0, 4096)),
  };
}

/** Reads an info dictionary of version 2 on its own, as peers send it for a magnet. Where files have more than one piece it
 * lacks their layers, and the hashes of their pieces are zeros: peers are asked for them. Throws `DecodeError`. */
export function parseV2Info(infoBytes: Uint8Array, sha256: Sha256): Info {
  return readV2Info(viewBencode(infoBytes), 0, undefined, new Merkle(sha256));
}

/** More piece layers than this are not asked of peers: a transport file that has them and names as many trackers as it may
 * is not larger than others may be (`MAX_TRANSPORT_FILE_BYTES`). That is 1 TiB of pieces of 4 MiB. */
export const MAX_LAYERS_BYTES = 8 * 1024 * 1024;

/** The hashes of the pieces of each file of more than one piece, by the root of the file (as Latin-1). */
type Layers = ReadonlyMap<string, Uint8Array>;

function readLayers(layers: BencodeView | undefined): Layers {
  const byRoot = new Map<string, Uint8Array>();
  for (const [root, value] of layers?.entries() ?? []) {
    const hashes = value.bytes();
    if (hashes) byRoot.set(root, hashes);
  }
  return byRoot;
}

function readV2Info(dict: BencodeView, at: number, known: Layers | undefined, merkle: Merkle): Info {
  const fail = (message: string) => new DecodeError(FORMAT, at, message);
  if (!isV2Info(dict)) throw fail("not of version 2");
  const pieceLength = dict.get("piece length")?.integer() ?? 0;
  const isPower = pieceLength >= LEAF_BYTES && Number.isInteger(Math.log2(pieceLength));
  if (!isPower || pieceLength > MAX_PIECE_BYTES)
    throw fail(
      `expected a power of two of ${LEAF_BYTES} to ${MAX_PIECE_BYTES} as the piece length, not ${pieceLength}`,
    );
  const nameBytes = dict.get("name.utf-8")?.bytes() ?? dict.get("name")?.bytes();
  if (!nameBytes) throw fail("no name");
  const name = safeElement(nameBytes) || "unnamed";
  const tree = readFileTree(dict, at);
  const { files, pieceCount, length } = placed(
    tree,
    pieceLength,
    isOneFileTree(dict) ? name : undefined,
    fail,
  );
  if (length === 0) throw fail("no content at all");
  const layers = layersOf(tree, files, pieceLength);
  const lacksLayers = known === undefined && layers.length > 0;
  if (lacksLayers && layersBytes(layers) > MAX_LAYERS_BYTES)
    throw fail(
      `expected piece layers of ${MAX_LAYERS_BYTES} bytes at most, which peers can be asked for, not of ${layersBytes(layers)}: play it from its transport file`,
    );
  const pieceHashes = new Uint8Array(pieceCount * DIGEST_BYTES);
  const shortPieces = new Map<number, number>();
  for (const [i, { offset }] of files.entries()) {
    const { root, length: size } = tree[i]!;
    if (!root) continue;
    const first = offset / pieceLength;
    const hashes = size <= pieceLength ? root : known?.get(latin1Text(root));
    const count = Math.ceil(size / pieceLength);
    const isChecked = count > 1 && !lacksLayers;
    const problem = isChecked ? layerProblem(hashes, count, root, pieceLength, merkle) : undefined;
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

/** The files of more than one piece. */
function layersOf(tree: readonly TreeFile[], files: readonly InfoFile[], pieceLength: number): PieceLayer[] {
  return tree.flatMap(({ root, length }, i) =>
    root && length > pieceLength
      ? [{ root, firstPiece: files[i]!.offset / pieceLength, pieceCount: Math.ceil(length / pieceLength) }]
      : [],
  );
}

/** Why these are not the hashes of all pieces of a file. */
function layerProblem(
  hashes: Uint8Array | undefined,
  count: number,
  root: Uint8Array,
  pieceLength: number,
  merkle: Merkle,
): string | undefined {
  if (!hashes) return "BitTorrent v2 without its piece layers";
  if (hashes.length !== count * DIGEST_BYTES)
    return `expected ${count} hashes in a piece layer, not ${hashes.length / DIGEST_BYTES}`;
  const row = Array.from({ length: count }, (_, i) =>
    hashes.subarray(i * DIGEST_BYTES, (i + 1) * DIGEST_BYTES),
  );
  const isRight = equalBytes(merkle.rootOf(row, levelsFor(pieceLength / LEAF_BYTES)), root);
  return isRight ? undefined : "a piece layer does not fit the root of its file";
}

/** The files with their places: each begins with a piece, and what lies between them is nothing. */
function placed(
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
