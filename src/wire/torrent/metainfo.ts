import { concatBytes, equalBytes, latin1Bytes, latin1Text, toHex } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type FileHash, type Infohash, infohashOf, type Sha1 } from "../../base/ids.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/utf8.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { type BencodeView, viewBencode, viewBencodePrefix } from "../bencode-view.ts";
import { isTrackerUrl } from "../tracker/url.ts";
import { safeElement } from "./file-names.ts";
import { readFileTree } from "./file-tree.ts";
import { type InfoFile, readFiles } from "./info-files.ts";
import type { PieceLayer } from "./piece-layers.ts";
import { readWebSeeds, type WebSeed } from "./web-seeds.ts";

/** A checked info dictionary. It also satisfies `SwarmLayout`. */
export interface Info {
  readonly name: string;
  readonly pieceLength: number;
  readonly pieceCount: number;
  readonly length: number;
  /** Concatenated piece hashes: 20 bytes each, in v2 32 bytes. */
  readonly pieceHashes: Uint8Array;
  /** v2 only: lengths of the pieces that are shorter than `pieceLength`. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  /** v2 only: the layers of files of more than one piece. */
  readonly layers?: readonly PieceLayer[];
  /** Hashes of these layers are still unknown: metadata from peers does not contain them, and a transport file may lack them. */
  readonly lacksLayers?: boolean;
  readonly isPrivate: boolean;
  readonly files: readonly InfoFile[];
}

/** A checked transport file (BEP 3, 12, 17, 19, 27, 47). */
export interface TransportFile {
  readonly infohash: Infohash;
  /** SHA-1 of the whole file. */
  readonly fileHash: FileHash;
  readonly info: Info;
  /** The bytes of the info dictionary; their SHA-1 is the infohash. */
  readonly infoBytes: Uint8Array;
  /** The unmodified file. */
  readonly bytes: Uint8Array;
  /** Announce URLs by tier. */
  readonly trackers: readonly (readonly string[])[];
  /** Web servers that offer the content. */
  readonly webSeeds: readonly WebSeed[];
  readonly comment: string | undefined;
}

/** Larger transport files are refused (libtorrent: the same). */
export const MAX_TRANSPORT_FILE_BYTES = 10_000_000;
/** Larger info dictionaries from peers are refused (anacrolix: the same). */
export const MAX_INFO_BYTES = 16 * 1024 * 1024;
/** Transport files with more pieces are refused (libtorrent: the same). */
export const MAX_PIECES = 2_097_152;
/** A piece stays in memory until it is verified, so its size is limited; larger pieces are not in use. */
export const MAX_PIECE_BYTES = 32 * 1024 * 1024;
/** Maximum piece length of content that is smaller than one piece (libtorrent: the same). */
const MAX_PIECE_LENGTH = 32_767 * 16_384;
/** Trackers read from one transport file. */
const MAX_TRACKERS = 100;

/** DHT nodes read from one transport file. */
const MAX_NODES = 20;

const FORMAT = "transport file";
const HASH_BYTES = 20;
const SLASH = latin1Bytes("/");

/** Parses a transport file (BEP 3, 12, 17, 19, 27, 47). A hybrid (BEP 52) counts as v1.
 * @param limitBytes Larger files are refused. A file that this program built from metadata may exceed the default.
 * @throws DecodeError */
export function parseTransportFile(
  bytes: Uint8Array,
  sha1: Sha1,
  limitBytes = MAX_TRANSPORT_FILE_BYTES,
): TransportFile {
  return readTransportFile(bytes, sha1, limitBytes, (infoBytes, view) => ({
    infohash: infohashOf(sha1(infoBytes)),
    info: readInfo(view, view.range.start),
  }));
}

/** Parses the parts of a transport file that v1 and v2 share. `readVersion` reads the info dictionary. Throws `DecodeError`. */
export function readTransportFile(
  bytes: Uint8Array,
  sha1: Sha1,
  limitBytes: number,
  readVersion: (
    infoBytes: Uint8Array,
    info: BencodeView,
    file: BencodeView,
  ) => Pick<TransportFile, "infohash" | "info">,
): TransportFile {
  if (bytes.length > limitBytes) throw new DecodeError(FORMAT, limitBytes, `larger than ${limitBytes} bytes`);
  const file = viewTransportFile(bytes);
  if (!file.isDict) throw new DecodeError(FORMAT, 0, "expected a dictionary");
  const infoView = file.get("info");
  if (!infoView) throw new DecodeError(FORMAT, 0, "no info dictionary");
  const { start, end } = infoView.range;
  const infoBytes = bytes.subarray(start, end);
  checkCanonical(infoBytes, infoView);
  const comment = (file.get("comment.utf-8") ?? file.get("comment"))?.bytes();
  return {
    ...readVersion(infoBytes, infoView, file),
    fileHash: toHex(sha1(bytes)) as FileHash,
    infoBytes,
    bytes,
    trackers: readTrackers(file),
    webSeeds: readWebSeeds(file),
    comment: comment && decodeUtf8(comment.subarray(0, 4096)),
  };
}

/** Returns a view of a transport file. As in libtorrent, the order of keys is not checked, and bytes after the dictionary (often a
 * newline) are ignored: the infohash protects the info dictionary. Throws `DecodeError`. */
export function viewTransportFile(bytes: Uint8Array): BencodeView {
  return viewBencodePrefix(bytes, { isTolerant: true });
}

/** Returns a view of a bare info dictionary, which must be the whole input. The order of keys is not checked in version 1. Throws
 * `DecodeError`. */
export function viewInfo(infoBytes: Uint8Array): BencodeView {
  const info = viewBencode(infoBytes, { isTolerant: true });
  checkCanonical(infoBytes, info);
  return info;
}

/** Versions above 1 are strict (BEP 52): with a repeated key, or files in another order, programs would disagree about the content.
 * Throws `DecodeError`. */
function checkCanonical(infoBytes: Uint8Array, info: BencodeView): void {
  if ((info.get("meta version")?.integer() ?? 0) > 0) viewBencode(infoBytes);
}

/** Parses a bare info dictionary, as peers send it for a magnet (BEP 9). Throws `DecodeError`. */
export function parseInfo(infoBytes: Uint8Array): Info {
  if (infoBytes.length > MAX_INFO_BYTES) {
    throw new DecodeError(FORMAT, MAX_INFO_BYTES, `an info dictionary larger than ${MAX_INFO_BYTES} bytes`);
  }
  return readInfo(viewInfo(infoBytes), 0);
}

/** Builds a transport file from an info dictionary that peers sent.
 * @param trackers Announce URLs by tier.
 * @param pieceLayers v2 only: piece layers by root. */
export function makeTransportFile(
  infoBytes: Uint8Array,
  trackers: readonly (readonly string[])[],
  pieceLayers?: ReadonlyMap<string, Uint8Array>,
): Uint8Array<ArrayBuffer> {
  const tiers = trackers.filter((tier) => tier.length > 0);
  const head = encodeBencode(
    bencodeDict({ announce: tiers[0]?.[0], "announce-list": tiers.length > 0 ? tiers : undefined }),
  );
  const tail = encodeBencode(bencodeDict({ "piece layers": pieceLayers }));
  // Joined by hand, because the bytes of `info` must not change. The keys of `head` sort before `info`, those of `tail` after.
  return concatBytes([head.subarray(0, -1), latin1Bytes("4:info"), infoBytes, tail.subarray(1)]);
}

/** Builds the info dictionary of one file (BEP 3, 27). `pieceHashes`: the concatenated SHA-1 of its pieces. */
export function makeInfo(file: {
  readonly name: string;
  readonly length: number;
  readonly pieceLength: number;
  readonly pieceHashes: Uint8Array;
  readonly isPrivate: boolean;
}): Uint8Array<ArrayBuffer> {
  return encodeBencode(
    bencodeDict({
      length: file.length,
      name: encodeUtf8(file.name),
      "piece length": file.pieceLength,
      pieces: file.pieceHashes,
      private: file.isPrivate ? 1 : undefined,
    }),
  );
}

/** Reads the DHT nodes of a transport file (BEP 5 `nodes`) as `host:port`; the host may be a name. Malformed entries are skipped.
 * Throws `DecodeError` if the file is not bencoded. */
export function readDhtNodes(transportFile: Uint8Array): string[] {
  const nodes: string[] = [];
  for (const entry of viewTransportFile(transportFile).get("nodes")?.items() ?? []) {
    const [name, number] = entry.items();
    const host = decodeUtf8(name?.bytes()?.subarray(0, 256) ?? new Uint8Array(0));
    const port = number?.integer() ?? 0;
    if (!/^[\w.:-]+$/.test(host) || port < 1 || port > 65_535) continue;
    nodes.push(host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`);
    if (nodes.length >= MAX_NODES) break;
  }
  return nodes;
}

function readInfo(dict: BencodeView, offset: number): Info {
  const fail = (message: string) => new DecodeError(FORMAT, offset, message);
  if (!dict.isDict) throw fail("info is not a dictionary");
  const pieceHashes = dict.get("pieces")?.bytes();
  if (!pieceHashes) {
    const isVersion2 = (dict.get("meta version") ?? dict.get("file tree")) !== undefined;
    if (dict.get("live")?.isDict) throw fail("this is a live stream; it has no files");
    throw fail(isVersion2 ? "BitTorrent v2 only; v1 expected" : "no piece hashes");
  }
  const pieceLength = dict.get("piece length")?.integer();
  if (pieceLength === undefined || pieceLength <= 0 || pieceLength > MAX_PIECE_LENGTH) {
    throw fail(`expected a piece length of 1 to ${MAX_PIECE_BYTES}, not ${pieceLength}`);
  }
  const nameBytes = dict.get("name.utf-8")?.bytes() ?? dict.get("name")?.bytes();
  if (!nameBytes) throw fail("no name");
  const name = safeElement(nameBytes) || "unnamed";
  const files = readFiles(dict, name, offset);
  const last = files[files.length - 1]!;
  const length = last.offset + last.length;
  const pieceCount = Math.ceil(length / pieceLength);
  if (length === 0) throw fail("the content is empty");
  if (Math.min(pieceLength, length) > MAX_PIECE_BYTES) {
    throw fail(`expected a piece length of 1 to ${MAX_PIECE_BYTES}, not ${pieceLength}`);
  }
  if (pieceCount > MAX_PIECES) throw fail(`more than ${MAX_PIECES} pieces`);
  if (pieceHashes.length !== pieceCount * HASH_BYTES) {
    throw fail(`expected ${pieceCount} piece hashes, not ${pieceHashes.length / HASH_BYTES}`);
  }
  if (dict.get("file tree")) checkHybrid(dict, files, pieceLength, offset);
  const isPrivate = dict.get("private")?.integer() === 1;
  return { name, pieceLength, pieceCount, length, pieceHashes, isPrivate, files };
}

/**
 * Checks that the v1 and v2 metadata of a hybrid (BEP 52, "Upgrade Path") describe the same files: same paths and lengths in
 * the same order, each file aligned to a piece. Otherwise v1 and v2 peers would exchange different content.
 * @param files The files of the v1 metadata.
 * @param at Offset of the info dictionary, for errors.
 * @throws DecodeError
 */
function checkHybrid(info: BencodeView, files: readonly InfoFile[], pieceLength: number, at: number): void {
  const fail = (what: string) => new DecodeError(FORMAT, at, `hybrid (v1 and v2): ${what}`);
  const version = info.get("meta version")?.integer();
  if (version !== 2) throw fail(`expected meta version 2, not ${version}, in the v2 metadata`);
  const tree = readFileTree(info, at);
  const paths = pathsOf(info);
  let next = 0;
  for (const [i, file] of files.entries()) {
    if (file.isPad) continue;
    const other = tree[next++];
    const isSame = other && equalBytes(joined(other.path), paths[i]!) && other.length === file.length;
    if (!isSame) throw fail(`file ${i} (${file.path.join("/")}) differs between the v1 and v2 metadata`);
    if (file.length > 0 && file.offset % pieceLength !== 0)
      throw fail(`file ${i} (${file.path.join("/")}) does not start at a piece boundary in the v1 metadata`);
  }
  if (next !== tree.length) throw fail(`${tree.length - next} files are missing in the v1 metadata`);
}

/** Returns the unmodified paths of the v1 metadata. */
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

/** Reads `announce-list`, or `announce` if the list has no usable tracker (BEP 12). Returns announce URLs by tier; malformed URLs
 * are skipped, so that they do not affect the working ones. */
export function readTrackers(dict: BencodeView): string[][] {
  const known = new Set<string>();
  const tiers: string[][] = [];
  for (const tier of dict.get("announce-list")?.items() ?? []) {
    const urls: string[] = [];
    for (const entry of tier.items()) addTracker(entry.bytes(), known, urls);
    if (urls.length > 0) tiers.push(urls);
  }
  if (tiers.length > 0) return tiers;
  const single: string[] = [];
  addTracker(dict.get("announce")?.bytes(), known, single);
  return single.length > 0 ? [single] : [];
}

function addTracker(bytes: Uint8Array | undefined, known: Set<string>, urls: string[]): void {
  if (!bytes || bytes.length > 8192 || known.size >= MAX_TRACKERS) return;
  const url = latin1Text(bytes).trim();
  if (!isTrackerUrl(url) || known.has(url)) return;
  known.add(url);
  urls.push(url);
}
