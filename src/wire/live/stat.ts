import type { PeerAddress } from "../../base/address.ts";
import { readU16, readU32, readU48, writeU16, writeU32, writeU48 } from "../../base/bytes.ts";
import type { Infohash } from "../../base/ids.ts";
import { type Ed25519Sign, type Ed25519Verify, SIGNATURE_BYTES } from "../../base/signature.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { type BencodeView, viewBencode } from "../bencode-view.ts";
import { readTrackers } from "../torrent/metainfo.ts";
import { decodeEndpoints, encodeEndpoints } from "./endpoint.ts";
import { MAX_BYTES_PER_SECOND, MAX_RELAYS, MAX_STAT_BYTES } from "./limits.ts";
import { expectAtLeast, expectBytes, LIVE_KIND, liveMessageError } from "./message-kind.ts";
import { readManifests } from "./meta.ts";
import { SUCCESSOR_BYTES } from "./successor.ts";
import { isLatin1TrackerUrl } from "./text.ts";
import { signedBytes } from "./trust.ts";
import { type LiveVariant, readVariants, variantList } from "./variants.ts";

/** Status of the stream (STAT), signed by the source and forwarded unchanged. */
export interface StatMessage {
  readonly kind: "stat";
  readonly epoch: number;
  /** Number of the STAT in its epoch; only a newer one is processed and forwarded. */
  readonly number: number;
  readonly timestampMs: number;
  /** New bit rate of the stream, in bytes per second. */
  readonly bytesPerSecond?: number;
  /** The stream has ended permanently. */
  readonly isEnd: boolean;
  /** Current relays. Unless empty, they replace the relays of the transport file. */
  readonly relays: readonly PeerAddress[];
  /** Current trackers, each in a tier of its own. */
  readonly trackers: readonly string[];
  /** HLS manifests of the stream, as in the transport file, for peers that joined without it. */
  readonly manifests?: readonly string[];
  /** The successor record, which has a signature of its own. */
  readonly successor?: Uint8Array;
  /** The qualities of the broadcast, as in the transport file. */
  readonly variants?: readonly LiveVariant[];
}

const FIXED_BYTES = 20;
const STAT_PURPOSE = "sluice-stat:";
const MAX_STAT_TRACKERS = 8;

/** Encodes and signs a STAT. Throws `DecodeError` if it is too large or a tracker URL is not ASCII. */
export function encodeStat(
  message: Omit<StatMessage, "kind">,
  infohash: Infohash,
  sign: Ed25519Sign,
): Uint8Array<ArrayBuffer> {
  if (!message.trackers.every(isLatin1TrackerUrl))
    throw liveMessageError(LIVE_KIND.stat, 20, "expected tracker URLs in ASCII");
  const body = encodeBencode(
    bencodeDict({
      "announce-list": message.trackers.length > 0 ? message.trackers.map((url) => [url]) : undefined,
      bps: message.bytesPerSecond,
      end: message.isEnd ? 1 : undefined,
      hls: message.manifests?.length ? message.manifests.map(encodeUtf8) : undefined,
      next: message.successor,
      rly: message.relays.length > 0 ? encodeEndpoints(message.relays) : undefined,
      var: variantList(message.variants),
    }),
  );
  if (body.length > MAX_STAT_BYTES)
    throw liveMessageError(LIVE_KIND.stat, 2, `expected at most ${MAX_STAT_BYTES} bytes, not ${body.length}`);
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

/** Returns true if the signature of a STAT is valid. Check it before using or forwarding a STAT. */
export function isSignedStat(bytes: Uint8Array, infohash: Infohash, verify: Ed25519Verify): boolean {
  return verify(signedBytes(bytes, infohash, STAT_PURPOSE), bytes.subarray(bytes.length - SIGNATURE_BYTES));
}

/** Decodes a STAT without verifying its signature. Throws `DecodeError`. */
export function decodeStat(bytes: Uint8Array): StatMessage {
  expectAtLeast(bytes, FIXED_BYTES + SIGNATURE_BYTES);
  const length = readU16(bytes, 2);
  if (length > MAX_STAT_BYTES)
    throw liveMessageError(LIVE_KIND.stat, 2, `expected at most ${MAX_STAT_BYTES} bytes, not ${length}`);
  expectBytes(bytes, FIXED_BYTES + length + SIGNATURE_BYTES);
  const body = viewBencode(bytes.subarray(FIXED_BYTES, FIXED_BYTES + length), {
    maxDepth: 4,
    maxTokens: 256,
  });
  if (!body.isDict) throw liveMessageError(LIVE_KIND.stat, FIXED_BYTES, "expected a dictionary");
  const bytesPerSecond = rateIn(body);
  const relays = body.get("rly")?.bytes();
  const successor = body.get("next")?.bytes();
  const manifests = readManifests(body.get("hls"));
  const variants = readVariants(body.get("var"));
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
    ...(successor?.length === SUCCESSOR_BYTES && { successor: successor.slice() }),
    ...(variants.length > 0 && { variants }),
  };
}

function rateIn(body: BencodeView): number | undefined {
  const rate = body.get("bps")?.integer();
  return rate !== undefined && rate >= 1 && rate <= MAX_BYTES_PER_SECOND ? rate : undefined;
}
