import { concatBytes, latin1Bytes, latin1Text, toHex } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type ContentId, type Infohash, infohashOf, type Sha1 } from "../base/ids.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { type BencodeView, viewBencode } from "./bencode-view.ts";
import { safeElement } from "./file-names.ts";
import { checkHybrid } from "./hybrid.ts";
import { readFiles } from "./info-files.ts";
import type { PieceLayer } from "./piece-layers.ts";
import { isTrackerUrl } from "./tracker-url.ts";
import { readWebSeeds, type WebSeed } from "./web-seeds.ts";

/** One file of an info dictionary (BEP 3, 47). */
export interface InfoFile {
  /** Display text; sanitised, never a path on our disk. */
  readonly path: readonly string[];
  readonly length: number;
  /** Where it begins in the whole content, in bytes. */
  readonly offset: number;
  readonly isPad: boolean;
  readonly isSymlink: boolean;
}

/** A checked info dictionary. Structurally also a `SwarmLayout`. */
export interface Info {
  readonly name: string;
  readonly pieceLength: number;
  readonly pieceCount: number;
  readonly length: number;
  /** 20 bytes a piece; 32 in version 2. */
  readonly pieceHashes: Uint8Array;
  /** In version 2 alone: which pieces are shorter than others, and how long they are. */
  readonly shortPieces?: ReadonlyMap<number, number>;
  /** In version 2 alone: the files of more than one piece. */
  readonly layers?: readonly PieceLayer[];
  /** The hashes of those layers are still to be found: metadata does not bring them. */
  readonly lacksLayers?: boolean;
  readonly isPrivate: boolean;
  readonly files: readonly InfoFile[];
}

/** A checked transport file (BEP 3, 12, 17, 19, 27, 47). */
export interface TransportFile {
  readonly infohash: Infohash;
  /** SHA-1 of the whole file. */
  readonly contentId: ContentId;
  readonly info: Info;
  /** The info dictionary's own bytes, whose SHA-1 is the infohash. */
  readonly infoBytes: Uint8Array;
  /** The file as it came. */
  readonly bytes: Uint8Array;
  /** Announce URLs by tier. */
  readonly trackers: readonly (readonly string[])[];
  /** Web servers that have the content. */
  readonly webSeeds: readonly WebSeed[];
  readonly comment: string | undefined;
}

/** Larger transport files are refused (libtorrent: the same). */
export const MAX_TRANSPORT_FILE_BYTES = 10_000_000;
/** Larger info dictionaries are refused; what a magnet's peers may send (anacrolix: the same). */
export const MAX_INFO_BYTES = 16 * 1024 * 1024;
/** libtorrent: the same. */
export const MAX_PIECES = 2_097_152;
/** A piece is held in memory until it is verified, so its size is bounded; nobody makes larger ones. */
export const MAX_PIECE_BYTES = 32 * 1024 * 1024;
/** Trackers that are read from one transport file or magnet. */
export const MAX_TRACKERS = 100;

const FORMAT = "transport file";
const HASH_BYTES = 20;

/** Reads a transport file (BEP 3, 12, 17, 19, 27, 47). Hybrids (BEP 52) count as version 1. A file that we made ourselves from a
 * magnet's metadata may be larger than one that comes from outside: `limitBytes`. Throws `DecodeError`. */
export function parseTransportFile(
  bytes: Uint8Array,
  sha1: Sha1,
  limitBytes = MAX_TRANSPORT_FILE_BYTES,
): TransportFile {
  if (bytes.length > limitBytes) throw new DecodeError(FORMAT, limitBytes, `larger than ${limitBytes} bytes`);
  const file = viewBencode(bytes);
  if (!file.isDict) throw new DecodeError(FORMAT, 0, "expected a dictionary");
  const infoView = file.get("info");
  if (!infoView) throw new DecodeError(FORMAT, 0, "no info dictionary");
  const { start, end } = infoView.range;
  const info = readInfo(infoView, start);
  const infoBytes = bytes.subarray(start, end);
  const comment = (file.get("comment.utf-8") ?? file.get("comment"))?.bytes();
  return {
    infohash: infohashOf(sha1(infoBytes)),
    contentId: toHex(sha1(bytes)) as ContentId,
    info,
    infoBytes,
    bytes,
    trackers: readTrackers(file),
    webSeeds: readWebSeeds(file),
    comment: comment && decodeUtf8(comment.subarray(0, 4096)),
  };
}

/** Reads an info dictionary on its own, as peers send it for a magnet (BEP 9). Throws `DecodeError`. */
export function parseInfo(infoBytes: Uint8Array): Info {
  if (infoBytes.length > MAX_INFO_BYTES) {
    throw new DecodeError(FORMAT, MAX_INFO_BYTES, `an info dictionary larger than ${MAX_INFO_BYTES} bytes`);
  }
  return readInfo(viewBencode(infoBytes), 0);
}

/** The transport file around an info dictionary that peers sent, with the trackers that the magnet named, and in version 2
 * the piece layers (by root). */
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
  // The keys above sort before `info`, whose bytes must stay as they are, and what follows after it.
  return concatBytes([head.subarray(0, -1), latin1Bytes("4:info"), infoBytes, tail.subarray(1)]);
}

function readInfo(dict: BencodeView, offset: number): Info {
  const fail = (message: string) => new DecodeError(FORMAT, offset, message);
  if (!dict.isDict) throw fail("info is not a dictionary");
  const pieceHashes = dict.get("pieces")?.bytes();
  if (!pieceHashes) {
    const isVersion2 = (dict.get("meta version") ?? dict.get("file tree")) !== undefined;
    if (dict.get("live")?.isDict) throw fail("a live stream, which has no files");
    throw fail(isVersion2 ? "BitTorrent v2 only, where v1 was expected" : "no piece hashes");
  }
  const pieceLength = dict.get("piece length")?.integer();
  if (pieceLength === undefined || pieceLength <= 0 || pieceLength > MAX_PIECE_BYTES) {
    throw fail(`expected a piece length of 1 to ${MAX_PIECE_BYTES}, not ${pieceLength}`);
  }
  const nameBytes = dict.get("name.utf-8")?.bytes() ?? dict.get("name")?.bytes();
  if (!nameBytes) throw fail("no name");
  const name = safeElement(nameBytes) || "unnamed";
  const files = readFiles(dict, name, offset);
  const last = files[files.length - 1]!;
  const length = last.offset + last.length;
  const pieceCount = Math.ceil(length / pieceLength);
  if (length === 0) throw fail("no content at all");
  if (pieceCount > MAX_PIECES) throw fail(`more than ${MAX_PIECES} pieces`);
  if (pieceHashes.length !== pieceCount * HASH_BYTES) {
    throw fail(`expected ${pieceCount} piece hashes, not ${pieceHashes.length / HASH_BYTES}`);
  }
  if (dict.get("file tree")) checkHybrid(dict, files, pieceLength, offset);
  const isPrivate = dict.get("private")?.integer() === 1;
  return { name, pieceLength, pieceCount, length, pieceHashes, isPrivate, files };
}

/** `announce-list` where it names any tracker we can speak to, otherwise `announce` (BEP 12). What is not a tracker URL
 * is left out: a broken entry must not cost the working ones. */
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
