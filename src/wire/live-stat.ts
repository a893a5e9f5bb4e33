import type { PeerAddress } from "../base/address.ts";
import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../base/bytes.ts";
import type { Infohash } from "../base/ids.ts";
import { type Ed25519Sign, type Ed25519Verify, SIGNATURE_BYTES } from "../base/signature.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { type BencodeView, viewBencode } from "./bencode-view.ts";
import { decodeEndpoints, encodeEndpoints } from "./live-address.ts";
import { expectAtLeast, expectBytes, LIVE_KIND, liveFault } from "./live-kinds.ts";
import { MAX_BYTES_PER_SECOND, MAX_RELAYS, MAX_STAT_BYTES } from "./live-limits.ts";
import { readManifests } from "./live-meta.ts";
import { isWritableTracker } from "./live-text.ts";
import { signedBytes } from "./live-trust.ts";
import { readTrackers } from "./metainfo.ts";

/** What the source tells everybody besides its pieces (STAT): signed, and handed on as it came. */
export interface StatMessage {
  readonly kind: "stat";
  readonly epoch: number;
  /** Counts the STATs of an epoch; only one newer than the last is looked at and handed on. */
  readonly number: number;
  readonly timestampMs: number;
  /** The rate has changed, in bytes a second. */
  readonly bytesPerSecond?: number;
  /** The stream is over, and will not go on. */
  readonly isEnd: boolean;
  /** Relays of now; they take the place of those in the transport file where there are any. */
  readonly relays: readonly PeerAddress[];
  /** Trackers of now, each a tier of its own. */
  readonly trackers: readonly string[];
  /** Copies of the stream on the web, as in the transport file: for those who came without one. */
  readonly manifests?: readonly string[];
}

const FIXED_BYTES = 20;
const STAT_PURPOSE = "sluice-stat:";
const MAX_STAT_TRACKERS = 8;

/** The payload of a STAT, signed. Throws `DecodeError` where it says too much. */
export function encodeStat(
  message: Omit<StatMessage, "kind">,
  infohash: Infohash,
  sign: Ed25519Sign,
): Uint8Array<ArrayBuffer> {
  if (!message.trackers.every(isWritableTracker))
    throw liveFault(LIVE_KIND.stat, 20, "no tracker's ASCII URL");
  const body = encodeBencode(
    bencodeDict({
      "announce-list": message.trackers.length > 0 ? message.trackers.map((url) => [url]) : undefined,
      bps: message.bytesPerSecond,
      end: message.isEnd ? 1 : undefined,
      hls: message.manifests?.length ? message.manifests.map(encodeUtf8) : undefined,
      rly: message.relays.length > 0 ? encodeEndpoints(message.relays) : undefined,
    }),
  );
  if (body.length > MAX_STAT_BYTES)
    throw liveFault(LIVE_KIND.stat, 2, `${body.length} bytes of ${MAX_STAT_BYTES}`);
  const bytes = new Uint8Array(FIXED_BYTES + body.length + SIGNATURE_BYTES);
  bytes[0] = LIVE_KIND.stat;
  writeU16(bytes, 2, body.length);
  writeU32(bytes, 4, message.epoch);
  writeU48(bytes, 8, message.number);
  writeU48(bytes, 14, message.timestampMs);
  bytes.set(body, FIXED_BYTES);
  bytes.set(sign(signedBytes(bytes, infohash, STAT_PURPOSE)), FIXED_BYTES + body.length);
  return bytes;
}

/** Whether the stream's key vouches for the payload of a STAT. To be asked before it counts or is handed on. */
export function isSignedStat(bytes: Uint8Array, infohash: Infohash, verify: Ed25519Verify): boolean {
  return verify(signedBytes(bytes, infohash, STAT_PURPOSE), bytes.subarray(bytes.length - SIGNATURE_BYTES));
}

/** Reads a STAT; its signature is not looked at. Throws `DecodeError`. */
export function decodeStat(bytes: Uint8Array): StatMessage {
  expectAtLeast(bytes, FIXED_BYTES + SIGNATURE_BYTES);
  const length = readU16(bytes, 2);
  if (length > MAX_STAT_BYTES) throw liveFault(LIVE_KIND.stat, 2, `${length} bytes of ${MAX_STAT_BYTES}`);
  expectBytes(bytes, FIXED_BYTES + length + SIGNATURE_BYTES);
  const body = viewBencode(bytes.subarray(FIXED_BYTES, FIXED_BYTES + length), {
    maxDepth: 4,
    maxTokens: 256,
  });
  if (!body.isDict) throw liveFault(LIVE_KIND.stat, FIXED_BYTES, "expected a dictionary");
  const bytesPerSecond = rateIn(body);
  const relays = body.get("rly")?.bytes();
  const manifests = readManifests(body.get("hls"));
  return {
    kind: "stat",
    epoch: readU32(bytes, 4),
    number: readU48(bytes, 8),
    timestampMs: readU48(bytes, 14),
    ...(bytesPerSecond !== undefined && { bytesPerSecond }),
    isEnd: body.get("end")?.integer() === 1,
    relays: relays ? decodeEndpoints(relays, MAX_RELAYS) : [],
    trackers: readTrackers(body).flat().slice(0, MAX_STAT_TRACKERS),
    ...(manifests.length > 0 && { manifests }),
  };
}

function rateIn(body: BencodeView): number | undefined {
  const rate = body.get("bps")?.integer();
  return rate !== undefined && rate >= 1 && rate <= MAX_BYTES_PER_SECOND ? rate : undefined;
}
