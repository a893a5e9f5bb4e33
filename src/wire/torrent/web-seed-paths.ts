import { type Infohash, infohashBytes } from "../../base/ids.ts";
import { percentEncode } from "../../base/percent.ts";
import type { BencodeView } from "../bencode-view.ts";
import { isOneFileTree, readFileTree } from "./file-tree.ts";
import { viewInfo } from "./metainfo.ts";

/**
 * Returns the path of each file below the URL of a web seed: the percent-encoded names from the transport file (BEP 19), or
 * undefined if a name is empty, `.` or `..`; such a file is never requested.
 * @param infoBytes Bytes that `parseInfo` or `parseV2Info` accepted; the result has the indices of its `files`.
 */
export function webSeedPaths(infoBytes: Uint8Array): (string | undefined)[] {
  const info = viewInfo(infoBytes);
  const name = text(info, "name");
  const top = name && encodeElement(name);
  const below = (path: readonly Uint8Array[] | undefined) => {
    const elements = path?.map(encodeElement);
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

/** Returns the URL of a file. The URL of a web seed is a folder if it ends with a slash, or if the content has several files
 * (BEP 19). */
export function webSeedFileUrl(url: string, path: string, isOneFile: boolean): string {
  if (url.endsWith("/")) return url + path;
  return isOneFile ? url : `${url}/${path}`;
}

/** Returns the URL of the bytes `[start, end)` of a piece (BEP 17). */
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

/** Encodes one path element; undefined if it is empty or consists of dots. A slash in it is escaped. */
function encodeElement(bytes: Uint8Array): string | undefined {
  const isNone = bytes.length === 0 || bytes.every((byte) => byte === 0x2e);
  return isNone ? undefined : percentEncode(bytes);
}
