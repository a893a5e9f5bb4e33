import { latin1Bytes, latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { BencodeView } from "./bencode-view.ts";

/** One file of a `file tree` (BEP 52). */
export interface TreeFile {
  /** As it is written; for display it must be made safe first. */
  readonly path: readonly Uint8Array[];
  readonly length: number;
  /** The root of its Merkle tree, 32 bytes; undefined for an empty file. */
  readonly root: Uint8Array | undefined;
  readonly isSymlink: boolean;
}

/** As of lists of files (`info-files.ts`). */
const MAX_FILES = 100_000;
const MAX_DEPTH = 100;
/** Elements of all paths together, folders counted for each file within: so many of a tree's bytes may become objects. */
const MAX_ELEMENTS = 1_000_000;
const ROOT_BYTES = 32;
const FORMAT = "transport file";

/** The files of the `file tree` of an info dictionary in their order (BEP 52). `at` is where that begins, for errors.
 * Throws `DecodeError`. */
export function readFileTree(info: BencodeView, at: number): TreeFile[] {
  const tree = info.get("file tree");
  if (!tree?.isDict) throw new DecodeError(FORMAT, at, "expected a dictionary of files (file tree)");
  const files: TreeFile[] = [];
  let elements = 0;
  /** Folders whose entries are still to be read, the innermost last. */
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
    if (!entry.isDict) throw new DecodeError(FORMAT, at, "an entry of the file tree is not a dictionary");
    const inner = [...path, latin1Bytes(name)];
    elements += inner.length;
    if (elements > MAX_ELEMENTS || inner.length > MAX_DEPTH)
      throw new DecodeError(FORMAT, at, "a file tree that is too large or too deep");
    const leaf = entry.get("");
    if (leaf) files.push(readLeaf(leaf, inner, at));
    else {
      open.push(entry.entries());
      path.push(inner[inner.length - 1]!);
    }
    if (files.length > MAX_FILES) throw new DecodeError(FORMAT, at, `more than ${MAX_FILES} files`);
  }
  if (files.length === 0) throw new DecodeError(FORMAT, at, "a file tree without files");
  return files;
}

function readLeaf(leaf: BencodeView, path: readonly Uint8Array[], at: number): TreeFile {
  const length = leaf.get("length")?.integer();
  if (length === undefined || length < 0 || !Number.isSafeInteger(length))
    throw new DecodeError(FORMAT, at, `expected the length of a file in the file tree, not ${length}`);
  const root = leaf.get("pieces root")?.bytes();
  if (length > 0 && root?.length !== ROOT_BYTES)
    throw new DecodeError(FORMAT, at, `expected a pieces root of ${ROOT_BYTES} bytes, not ${root?.length}`);
  const isSymlink = leaf.get("attr")?.bytes()?.includes(0x6c) === true;
  return { path, length: isSymlink ? 0 : length, root: length > 0 ? root : undefined, isSymlink };
}

/** Whether a file tree is that of one file alone, which has the name of the content (BEP 52). */
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
