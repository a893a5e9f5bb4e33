import { latin1Bytes, latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { BencodeView } from "../bencode-view.ts";

/** One file of a `file tree` (BEP 52). */
export interface TreeFile {
  /** The path as written in the file; make it safe before display. */
  readonly path: readonly Uint8Array[];
  readonly length: number;
  /** Root of the Merkle tree of the file, 32 bytes; undefined for an empty file. */
  readonly root: Uint8Array | undefined;
  readonly isSymlink: boolean;
}

/** The same limits as for file lists (`info-files.ts`). */
const MAX_FILES = 100_000;
const MAX_DEPTH = 100;
/** Path elements of all files together, counting a folder once per file: limits the objects that a tree can create. */
const MAX_ELEMENTS = 1_000_000;
const ROOT_BYTES = 32;
/** Letters of `attr` (BEP 47): `l` and `p`. */
const [SYMLINK, PAD] = [0x6c, 0x70];
const FORMAT = "transport file";

/** Reads the files of the `file tree` of an info dictionary, in order (BEP 52).
 * @param at Offset of the info dictionary, for errors.
 * @throws DecodeError */
export function readFileTree(info: BencodeView, at: number): TreeFile[] {
  const tree = info.get("file tree");
  if (!tree?.isDict) throw new DecodeError(FORMAT, at, "expected a dictionary of files (file tree)");
  const files: TreeFile[] = [];
  let elements = 0;
  /** Iterators of the open folders, innermost last. */
  const open = [tree.entries()];
  const path: Uint8Array[] = [];
  while (open.length > 0) {
    const next = open[open.length - 1]!.next();
    if (next.done) {
      open.pop();
      path.pop();
      continue;
    }
    const [name, entry] = next.value;
    if (name === "") throw new DecodeError(FORMAT, at, "an empty name in the file tree");
    if (!entry.isDict) throw new DecodeError(FORMAT, at, "an entry of the file tree is not a dictionary");
    const inner = [...path, latin1Bytes(name)];
    elements += inner.length;
    if (elements > MAX_ELEMENTS || inner.length > MAX_DEPTH)
      throw new DecodeError(FORMAT, at, "the file tree is too large or too deep");
    const leaf = entry.get("");
    if (leaf) files.push(readLeaf(leaf, inner, at));
    else {
      open.push(entry.entries());
      path.push(inner[inner.length - 1]!);
    }
    if (files.length > MAX_FILES) throw new DecodeError(FORMAT, at, `more than ${MAX_FILES} files`);
  }
  if (files.length === 0) throw new DecodeError(FORMAT, at, "the file tree has no files");
  return files;
}

function readLeaf(leaf: BencodeView, path: readonly Uint8Array[], at: number): TreeFile {
  const length = leaf.get("length")?.integer();
  if (length === undefined || length < 0 || !Number.isSafeInteger(length))
    throw new DecodeError(FORMAT, at, `expected a file length in the file tree, not ${length}`);
  const attributes = leaf.get("attr")?.bytes();
  // Files start with a piece, so nothing needs padding.
  if (attributes?.includes(PAD)) throw new DecodeError(FORMAT, at, "a padding file in the file tree");
  const root = leaf.get("pieces root")?.bytes();
  if (length > 0 && root?.length !== ROOT_BYTES)
    throw new DecodeError(FORMAT, at, `expected a pieces root of ${ROOT_BYTES} bytes, not ${root?.length}`);
  // No data has this hash, so no peer could ever send a valid piece.
  if (length > 0 && root?.every((byte) => byte === 0))
    throw new DecodeError(FORMAT, at, "a pieces root of zeros");
  const isSymlink = attributes?.includes(SYMLINK) === true;
  return { path, length: isSymlink ? 0 : length, root: length > 0 ? root : undefined, isSymlink };
}

/** Returns true if the file tree holds a single file with the same name as the content (BEP 52). */
export function isOneFileTree(info: BencodeView): boolean {
  const [first, second] = info.get("file tree")?.entries() ?? [];
  const name = info.get("name")?.bytes();
  return (
    first !== undefined &&
    second === undefined &&
    !!first[1].get("") &&
    name !== undefined &&
    latin1Text(name) === first[0]
  );
}
