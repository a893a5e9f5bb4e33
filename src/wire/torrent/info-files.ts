import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import type { BencodeView } from "../bencode-view.ts";
import { safePath, UniquePaths } from "./file-names.ts";

/** One file of an info dictionary (BEP 3, 47). */
export interface InfoFile {
  /** Display text, sanitized; never a path on disk. */
  readonly path: readonly string[];
  readonly length: number;
  /** Offset of the file in the content, in bytes. */
  readonly offset: number;
  readonly isPad: boolean;
  readonly isSymlink: boolean;
}

/** Files in one transport file; real ones have at most some ten thousand. */
const MAX_FILES = 100_000;
/** Nested folders (libtorrent: the same). */
const MAX_PATH_DEPTH = 100;
const FORMAT = "transport file";
const NO_BYTES = new Uint8Array(0);

/** Reads the files of an info dictionary, in order and with offsets (BEP 3, 47): the entries of `files`, or one file `name`.
 * @param at Offset of the dictionary, for errors.
 * @throws DecodeError */
export function readFiles(info: BencodeView, name: string, at: number): InfoFile[] {
  const entries = info.get("files");
  if (!entries) {
    return [{ path: [name], offset: 0, ...readLength(info, at), isPad: false, isSymlink: false }];
  }
  const count = entries.itemCount();
  if (count === 0) throw new DecodeError(FORMAT, at, "expected a list of files");
  if (count > MAX_FILES) throw new DecodeError(FORMAT, at, `more than ${MAX_FILES} files`);
  const files: InfoFile[] = [];
  const paths = new UniquePaths();
  let offset = 0;
  for (const entry of entries.items()) {
    const file = readFile(entry, files.length, offset, paths, at);
    files.push(file);
    offset += file.length;
    if (offset > Number.MAX_SAFE_INTEGER)
      throw new DecodeError(FORMAT, at, "more than 2^53 bytes of content");
  }
  return files;
}

function readFile(
  dict: BencodeView,
  index: number,
  offset: number,
  paths: UniquePaths,
  at: number,
): InfoFile {
  if (!dict.isDict) throw new DecodeError(FORMAT, at, `file ${index} is not a dictionary`);
  const attributes = latin1Text(dict.get("attr")?.bytes() ?? NO_BYTES);
  const isPad = attributes.includes("p");
  const isSymlink = attributes.includes("l");
  // A symbolic link takes no bytes of the content, whatever its length says (BEP 47).
  const { length } = isSymlink ? { length: 0 } : readLength(dict, at);
  // A padding file is never shown, so its name may be absent or a duplicate.
  const path = isPad
    ? [".pad", String(length)]
    : paths.add(safePath(readPath(dict, index, at), `file ${index + 1}`));
  return { path, length, offset, isPad, isSymlink };
}

function readLength(dict: BencodeView, at: number): { length: number } {
  const length = dict.get("length")?.integer();
  if (length === undefined || length < 0) {
    throw new DecodeError(FORMAT, at, `expected a file length, not ${length}`);
  }
  return { length };
}

function readPath(dict: BencodeView, index: number, at: number): Uint8Array[] {
  const elements = listIn(dict, "path.utf-8") ?? listIn(dict, "path");
  const count = elements?.itemCount() ?? 0;
  if (!elements || count === 0) throw new DecodeError(FORMAT, at, `file ${index} has no path`);
  if (count > MAX_PATH_DEPTH)
    throw new DecodeError(FORMAT, at, `the path of file ${index} has too many elements`);
  return Array.from(elements.items(), (element) => {
    const bytes = element.bytes();
    if (!bytes)
      throw new DecodeError(FORMAT, at, `the path of file ${index} has an element that is not a string`);
    return bytes;
  });
}

function listIn(dict: BencodeView, key: string): BencodeView | undefined {
  const value = dict.get(key);
  return value?.isList ? value : undefined;
}
