import { concatBytes, equalBytes, latin1Bytes } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import type { BencodeView } from "./bencode-view.ts";
import { readFileTree } from "./file-tree.ts";
import type { InfoFile } from "./metainfo.ts";

const SLASH = latin1Bytes("/");

/**
 * Sees that the two halves of a hybrid (BEP 52, "Upgrade Path") describe the same files: the same paths and lengths in the
 * same order, each file at the beginning of a piece. Whoever joined by the other half would get something else. `files` are
 * those of the version 1 half, `at` is where the info dictionary begins. Throws `DecodeError`.
 */
export function checkHybrid(
  info: BencodeView,
  files: readonly InfoFile[],
  pieceLength: number,
  at: number,
): void {
  const fail = (what: string) => new DecodeError("transport file", at, `${what} of this hybrid (v1 and v2)`);
  const version = info.get("meta version")?.integer();
  if (version !== 2) throw fail(`expected meta version 2, not ${version}, in the v2 half`);
  const tree = readFileTree(info, at);
  const paths = pathsOf(info);
  let next = 0;
  for (const [i, file] of files.entries()) {
    if (file.isPad) continue;
    const other = tree[next++];
    const isSame = other && equalBytes(joined(other.path), paths[i]!) && other.length === file.length;
    if (!isSame) throw fail(`file ${i} (${file.path.join("/")}) is another one in the two halves`);
    if (file.length > 0 && file.offset % pieceLength !== 0)
      throw fail(`file ${i} (${file.path.join("/")}) does not begin with a piece in the v1 half`);
  }
  if (next !== tree.length) throw fail(`${tree.length - next} files are missing in the v1 half`);
}

/** The paths of the version 1 half, as they are written. */
function pathsOf(info: BencodeView): Uint8Array[] {
  const files = info.get("files");
  if (!files) return [info.get("name")?.bytes() ?? new Uint8Array(0)];
  return Array.from(files.items(), (file) =>
    joined(Array.from(file.get("path")?.items() ?? [], (element) => element.bytes() ?? new Uint8Array(0))),
  );
}

function joined(path: readonly Uint8Array[]): Uint8Array {
  return concatBytes(path.flatMap((element, i) => (i === 0 ? [element] : [SLASH, element])));
}
