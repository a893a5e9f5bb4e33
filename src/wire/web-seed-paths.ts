import { type Infohash, infohashBytes } from "../base/ids.ts";
import { percentEncode } from "../base/percent.ts";
import { type BencodeView, viewBencode } from "./bencode-view.ts";
import { isOneFileTree, readFileTree } from "./file-tree.ts";

/**
 * Where a web seed has each file, below its URL: the names as the transport file writes them, percent-encoded (BEP 19).
 * Undefined where a name would lead elsewhere (`..`, an empty one): such a file is never asked for. `infoBytes` have been
 * read by `parseInfo`; the indices are those of its `files`.
 */
export function webSeedPaths(infoBytes: Uint8Array): (string | undefined)[] {
  const info = viewBencode(infoBytes);
  const name = text(info, "name");
  const top = name && safeElement(name);
  const below = (path: readonly Uint8Array[] | undefined) => {
    const elements = path?.map(safeElement);
    return top === undefined || !elements || elements.includes(undefined)
      ? undefined
      : [top, ...elements].join("/");
  };
  if (!info.get("pieces")) {
    const paths = readFileTree(info, 0).map(({ path }) => path);
    return isOneFileTree(info) ? [top] : paths.map(below);
  }
  const files = info.get("files");
  return files?.isList ? Array.from(files.items(), (file) => below(pathOf(file))) : [top];
}

/** The URL of a file. A URL that ends in a slash is a folder, and so is that of content of many files (BEP 19). */
export function webSeedFileUrl(url: string, path: string, isOneFile: boolean): string {
  if (url.endsWith("/")) return url + path;
  return isOneFile ? url : `${url}/${path}`;
}

/** The URL of the bytes `start` to `end` (exclusive) of a piece (BEP 17). */
export function webSeedPieceUrl(
  url: string,
  infohash: Infohash,
  piece: number,
  start: number,
  end: number,
): string {
  const hash = percentEncode(infohashBytes(infohash));
  const join = url.includes("?") ? "&" : "?";
  return `${url}${join}info_hash=${hash}&piece=${piece}&ranges=${start}-${end - 1}`;
}

function text(dict: BencodeView, key: string): Uint8Array | undefined {
  return dict.get(`${key}.utf-8`)?.bytes() ?? dict.get(key)?.bytes();
}

function pathOf(file: BencodeView): Uint8Array[] | undefined {
  const utf8 = file.get("path.utf-8");
  const path = utf8?.isList ? utf8 : file.get("path");
  return path && Array.from(path.items(), (element) => element.bytes() ?? new Uint8Array(0));
}

/** One element of a path; undefined where it names no file of its own. A slash within it stays part of the name. */
function safeElement(bytes: Uint8Array): string | undefined {
  const isNone = bytes.length === 0 || bytes.every((byte) => byte === 0x2e);
  return isNone ? undefined : percentEncode(bytes);
}
