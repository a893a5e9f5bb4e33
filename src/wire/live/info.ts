import { latin1Text } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { isValidPublicKey } from "../../base/signature.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { type BencodeView, viewBencode } from "../bencode-view.ts";
import {
  MAX_BYTES_PER_SECOND,
  MAX_LIVE_FILE_BYTES,
  MAX_LIVE_PIECE_BYTES,
  MAX_PIECE_MS,
  MAX_SEGMENT_MS,
  MAX_WINDOW_SECONDS,
  MIN_PIECE_MS,
  MIN_SEGMENT_MS,
} from "./limits.ts";
import { displayText } from "./text.ts";

/** Format of the bytes of a live stream: transport packets, or concatenated HLS segments. */
type LiveContainer = "mpegts" | "hls-ts" | "hls-fmp4";

/** Number of stripes, and so of chunks per piece. */
type StripeCount = 4 | 8 | 16;

/** A checked info dictionary of a live stream (live protocol: Transport file). */
export interface LiveInfo {
  /** Name of the stream, safe to display. */
  readonly name: string;
  /** Ed25519 public key (32 bytes) of the source, which signs every piece. */
  readonly publicKey: Uint8Array;
  readonly stripeCount: StripeCount;
  /** Target duration of a piece. */
  readonly pieceMs: number;
  readonly maxPieceBytes: number;
  /** Bit rate that the source declares; a hint. */
  readonly bytesPerSecond: number;
  /** Time for which relays keep pieces for rewinding viewers. */
  readonly windowSeconds: number;
  /** Minimum duration of an HLS segment. */
  readonly segmentMs: number;
  readonly container: LiveContainer;
  /** Peers come only from trackers and the file (BEP 27). */
  readonly isPrivate: boolean;
}

const FORMAT = "live info";
const VERSION = 1;
/** Longer names are cut. */
const MAX_NAME_LENGTH = 256;
const TS_PACKET_BYTES = 188;
/** Keys by which programs that download files recognize an info dictionary. */
const FILE_KEYS = ["length", "files", "file tree"];
const CONTAINERS: readonly string[] = ["mpegts", "hls-ts", "hls-fmp4"];

/** Builds the info dictionary. Throws `DecodeError` if a value is out of range, or if {@link displayText} would change the name. */
export function liveInfoDict(info: LiveInfo): ReadonlyMap<string, BencodeInput> {
  const live = bencodeDict({
    K: info.stripeCount,
    alg: "ed25519",
    bps: info.bytesPerSecond,
    ct: info.container,
    k: info.publicKey,
    mx: info.maxPieceBytes,
    pd: info.pieceMs,
    seg: info.segmentMs,
    v: VERSION,
    win: info.windowSeconds,
  });
  const dict = bencodeDict({
    live,
    name: encodeUtf8(info.name),
    "piece length": pieceLengthOf(info.maxPieceBytes),
    private: info.isPrivate ? 1 : undefined,
  });
  // The name must survive a round trip, or the stream would have another infohash after a restart.
  const { name } = parseLiveInfo(encodeBencode(dict));
  if (name !== info.name)
    throw new DecodeError(FORMAT, 0, `the name would be displayed as "${name}"; use that name`);
  return dict;
}

/** Parses a bare info dictionary, as peers send it (BEP 9). Throws `DecodeError`. */
export function parseLiveInfo(infoBytes: Uint8Array): LiveInfo {
  if (infoBytes.length > MAX_LIVE_FILE_BYTES) {
    throw new DecodeError(FORMAT, MAX_LIVE_FILE_BYTES, `larger than ${MAX_LIVE_FILE_BYTES} bytes`);
  }
  return readLiveInfo(viewBencode(infoBytes));
}

/** Returns true if an info dictionary describes a live stream: it has `live` and no `pieces`. */
export function isLiveInfo(info: BencodeView): boolean {
  return info.get("live")?.isDict === true && info.get("pieces") === undefined;
}

/** Reads the info dictionary of a live stream. Throws `DecodeError`. */
export function readLiveInfo(info: BencodeView): LiveInfo {
  const at = info.range.start;
  const live = info.get("live");
  if (!live || !isLiveInfo(info)) throw new DecodeError(FORMAT, at, "expected a dictionary with live");
  const file = FILE_KEYS.find((key) => info.get(key) !== undefined);
  if (file !== undefined) throw new DecodeError(FORMAT, at, `expected no ${file} in a live stream`);
  const number = (key: string, low: number, high: number) => numberIn(live, key, low, high);
  const version = number("v", 1, Number.MAX_SAFE_INTEGER);
  if (version !== VERSION) throw new DecodeError(FORMAT, at, `version ${version} is not supported`);
  const algorithm = textIn(live, "alg");
  if (algorithm !== "ed25519")
    throw new DecodeError(FORMAT, at, `expected alg to be ed25519, not ${algorithm}`);
  const publicKey = live.get("k")?.bytes();
  if (!publicKey || !isValidPublicKey(publicKey))
    throw new DecodeError(FORMAT, at, "expected a valid Ed25519 public key of 32 bytes");
  const stripeCount = number("K", 4, 16);
  if (stripeCount !== 4 && stripeCount !== 8 && stripeCount !== 16) {
    throw new DecodeError(FORMAT, at, `expected 4, 8 or 16 stripes, not ${stripeCount}`);
  }
  const container = textIn(live, "ct");
  if (!isContainer(container)) throw new DecodeError(FORMAT, at, `unknown container ${container}`);
  const maxPieceBytes = number("mx", stripeCount * TS_PACKET_BYTES, MAX_LIVE_PIECE_BYTES);
  const pieceLength = pieceLengthOf(maxPieceBytes);
  numberIn(info, "piece length", pieceLength, pieceLength);
  const name = info.get("name")?.bytes();
  if (!name) throw new DecodeError(FORMAT, at, "no name");
  return {
    name: displayText(name, MAX_NAME_LENGTH) || "unnamed",
    publicKey,
    stripeCount,
    pieceMs: number("pd", MIN_PIECE_MS, MAX_PIECE_MS),
    maxPieceBytes,
    bytesPerSecond: number("bps", 1, MAX_BYTES_PER_SECOND),
    windowSeconds: number("win", 0, MAX_WINDOW_SECONDS),
    segmentMs: number("seg", MIN_SEGMENT_MS, MAX_SEGMENT_MS),
    container,
    isPrivate: info.get("private")?.integer() === 1,
  };
}

/** The smallest power of two that is at least `maxPieceBytes`: tools that display transport files require one. */
function pieceLengthOf(maxPieceBytes: number): number {
  return 2 ** Math.ceil(Math.log2(maxPieceBytes));
}

function numberIn(dict: BencodeView, key: string, low: number, high: number): number {
  const value = dict.get(key)?.integer();
  if (value === undefined || value < low || value > high) {
    throw new DecodeError(FORMAT, dict.range.start, `expected ${key} from ${low} to ${high}, not ${value}`);
  }
  return value;
}

function textIn(dict: BencodeView, key: string): string {
  return latin1Text((dict.get(key)?.bytes() ?? new Uint8Array(0)).subarray(0, 16)).replace(/[^ -~]/g, "?");
}

function isContainer(text: string): text is LiveContainer {
  return CONTAINERS.includes(text);
}
