import { createHash } from "node:crypto";
import { concatBytes } from "../../src/base/bytes.ts";
import { type Infohash, infohashOf } from "../../src/base/ids.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../../src/wire/bencode-encode.ts";

/** Contents of a transport file. A single file whose path is the name makes a single-file torrent. */
export interface TorrentRecipe {
  readonly name: string;
  readonly files: readonly {
    readonly path: string | readonly string[];
    readonly bytes: Uint8Array;
    readonly attr?: string;
  }[];
  readonly pieceLength: number;
  readonly trackers?: readonly (readonly string[])[];
  readonly private?: boolean;
  /** Additional members of the outer dictionary. */
  readonly extra?: Readonly<Record<string, BencodeInput>>;
}

export interface MadeTorrent {
  /** The transport file. */
  readonly bytes: Uint8Array;
  readonly infoBytes: Uint8Array;
  readonly infohash: Infohash;
  /** The concatenated files. */
  readonly content: Uint8Array;
}

/** SHA-1 like that of the runtime. */
export function sha1(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha1").update(bytes).digest());
}

/** SHA-256 like that of the runtime. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash("sha256").update(bytes).digest());
}

/** Makes a transport file (BEP 3) from bytes in memory. */
export function makeTorrent(recipe: TorrentRecipe): MadeTorrent {
  const content = concatBytes(recipe.files.map(({ bytes }) => bytes));
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < content.length; at += recipe.pieceLength) {
    hashes.push(sha1(content.subarray(at, at + recipe.pieceLength)));
  }
  const only = recipe.files.length === 1 ? recipe.files[0]! : undefined;
  const isSingle = only !== undefined && elements(only.path).join("/") === recipe.name;
  const info = bencodeDict({
    files: isSingle ? undefined : recipe.files.map(fileEntry),
    length: isSingle ? content.length : undefined,
    name: encodeUtf8(recipe.name),
    "piece length": recipe.pieceLength,
    pieces: concatBytes(hashes),
    private: recipe.private ? 1 : undefined,
  });
  const infoBytes = encodeBencode(info);
  const tiers = recipe.trackers ?? [];
  const bytes = encodeBencode(
    bencodeDict({
      announce: tiers[0]?.[0],
      "announce-list": tiers.length > 0 ? tiers : undefined,
      info,
      ...recipe.extra,
    }),
  );
  return { bytes, infoBytes, infohash: infohashOf(sha1(infoBytes)), content };
}

function fileEntry(file: TorrentRecipe["files"][number]): ReadonlyMap<string, BencodeInput> {
  return bencodeDict({
    attr: file.attr,
    length: file.bytes.length,
    path: elements(file.path).map(encodeUtf8),
  });
}

function elements(path: string | readonly string[]): readonly string[] {
  return typeof path === "string" ? path.split("/") : path;
}
