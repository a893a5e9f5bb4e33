import { concatBytes, latin1Text } from "../../src/base/bytes.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";
import { sha256 } from "./make-torrent.ts";

const LEAF = 16 * 1024;

/** Contents of a v2 transport file: files by path, at most one folder deep. */
export interface V2Recipe {
  readonly name: string;
  readonly files: Readonly<Record<string, Uint8Array>>;
  readonly pieceLength: number;
  /** Additional or replaced members of the info dictionary. */
  readonly info?: Readonly<Record<string, BencodeInput | undefined>>;
  /** Additional or replaced members of the outer dictionary. */
  readonly extra?: Readonly<Record<string, BencodeInput | undefined>>;
}

/** Makes a v2 transport file (BEP 52) from bytes in memory. Does not use `base/merkle.ts`, so that each implementation tests the
 * other. */
export function makeV2Torrent(recipe: V2Recipe) {
  const layers = new Map<string, BencodeInput>();
  const tree = new Map<string, Map<string, BencodeInput> | ReadonlyMap<string, BencodeInput>>();
  for (const [path, bytes] of Object.entries(recipe.files)) {
    const { root, layer } = treeOf(bytes, recipe.pieceLength);
    if (layer.length > 1) layers.set(latin1Text(root), concatBytes(layer));
    const leaf = bencodeDict({ length: bytes.length, "pieces root": bytes.length > 0 ? root : undefined });
    const [folder, file] = path.split("/") as [string, string | undefined];
    const entry = bencodeDict({ "": leaf });
    if (file === undefined) tree.set(folder, entry);
    else tree.set(folder, new Map([...(tree.get(folder) ?? []), [file, entry]]));
  }
  const info = bencodeDict({
    "file tree": tree as ReadonlyMap<string, BencodeInput>,
    "meta version": 2,
    name: recipe.name,
    "piece length": recipe.pieceLength,
    ...recipe.info,
  });
  const infoBytes = encodeBencode(info);
  const bytes = encodeBencode(bencodeDict({ info, "piece layers": layers, ...recipe.extra }));
  const infohash: Infohash = infohashOf(sha256(infoBytes).subarray(0, 20));
  return { bytes, infoBytes, infohash, layers };
}

/** Returns the root of a file, and its piece hashes. */
function treeOf(bytes: Uint8Array, pieceLength: number): { root: Uint8Array; layer: Uint8Array[] } {
  const leaves: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += LEAF) leaves.push(sha256(bytes.subarray(at, at + LEAF)));
  const perPiece = pieceLength / LEAF;
  let size = 1;
  while (size < leaves.length) size *= 2;
  const pieces = Math.ceil(bytes.length / pieceLength);
  if (pieces > 1) size = Math.max(size, perPiece);
  let row = [...leaves, ...Array.from({ length: size - leaves.length }, () => new Uint8Array(32))];
  let layer: Uint8Array[] = [];
  for (let width = 1; ; width *= 2) {
    if (width === perPiece) layer = row.slice(0, pieces);
    if (row.length <= 1) break;
    row = row.flatMap((left, i) => (i % 2 === 0 ? [sha256(concatBytes([left, row[i + 1]!]))] : []));
  }
  return { root: row[0] ?? new Uint8Array(32), layer };
}
