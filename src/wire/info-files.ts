import { latin1Text } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type BencodeDict, type BencodeValue, bytesOf, dictOf, integerOf, listOf } from "./bencode.ts";
import { safePath, UniquePaths } from "./file-names.ts";
import type { InfoFile } from "./metainfo.ts";

/** Files of one transport file; the largest in the field have some ten thousand. */
const MAX_FILES = 100_000;
/** Folders within folders (libtorrent: the same). */
const MAX_PATH_DEPTH = 100;
const FORMAT = "transport file";

/** The files of an info dictionary in their order, with where each begins (BEP 3, 47): those of `files`, or the one
 * named `name`. `at` is where the dictionary begins, for errors. Throws `DecodeError`. */
export function readFiles(info: BencodeDict, name: string, at: number): InfoFile[] {
  if (!info.has("files")) {
    return [{ path: [name], offset: 0, ...readLength(info, at), isPad: false, isSymlink: false }];
  }
  const entries = listOf(info.get("files"));
  if (!entries || entries.length === 0) throw new DecodeError(FORMAT, at, "expected a list of files");
  if (entries.length > MAX_FILES) throw new DecodeError(FORMAT, at, `more than ${MAX_FILES} files`);
  const files: InfoFile[] = [];
  const paths = new UniquePaths();
  let offset = 0;
  for (const entry of entries) {
    const file = readFile(entry, files.length, offset, paths, at);
    files.push(file);
    offset += file.length;
    if (offset > Number.MAX_SAFE_INTEGER) throw new DecodeError(FORMAT, at, "more than 2^53 bytes in all");
  }
  return files;
}

function readFile(
  entry: BencodeValue,
  index: number,
  offset: number,
  paths: UniquePaths,
  at: number,
): InfoFile {
  const dict = dictOf(entry);
  if (!dict) throw new DecodeError(FORMAT, at, `file ${index} is not a dictionary`);
  const attributes = latin1Text(bytesOf(dict.get("attr")) ?? new Uint8Array(0));
  const isPad = attributes.includes("p");
  const isSymlink = attributes.includes("l");
  // BEP 47: a link takes no bytes of the content, whatever its entry says.
  const { length } = isSymlink ? { length: 0 } : readLength(dict, at);
  // A padding file is never shown, so its name need not be there, nor be its own.
  const path = isPad
    ? [".pad", String(length)]
    : paths.add(safePath(readPath(dict, index, at), `file ${index + 1}`));
  return { path, length, offset, isPad, isSymlink };
}

function readLength(dict: BencodeDict, at: number): { length: number } {
  const length = integerOf(dict.get("length"));
  if (length === undefined || length < 0) {
    throw new DecodeError(FORMAT, at, `expected the length of a file, not ${length}`);
  }
  return { length };
}

function readPath(dict: BencodeDict, index: number, at: number): Uint8Array[] {
  const elements = listOf(dict.get("path.utf-8")) ?? listOf(dict.get("path"));
  if (!elements || elements.length === 0) throw new DecodeError(FORMAT, at, `file ${index} has no path`);
  if (elements.length > MAX_PATH_DEPTH) throw new DecodeError(FORMAT, at, `file ${index} lies too deep`);
  return elements.map((element) => {
    const bytes = bytesOf(element);
    if (!bytes) throw new DecodeError(FORMAT, at, `the path of file ${index} holds something else than text`);
    return bytes;
  });
}
