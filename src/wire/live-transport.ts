import type { PeerAddress } from "../base/address.ts";
import { concatBytes, latin1Bytes, toHex } from "../base/bytes.ts";
import { DecodeError } from "../base/errors.ts";
import { type ContentId, type Infohash, infohashOf, type Sha1 } from "../base/ids.ts";
import { type Ed25519Sign, type Ed25519VerifierOf, SIGNATURE_BYTES } from "../base/signature.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "./bencode-encode.ts";
import { type BencodeView, viewBencode } from "./bencode-view.ts";
import { decodeEndpoints, encodeEndpoints } from "./live-address.ts";
import { isLiveInfo, type LiveInfo, liveInfoDict, readLiveInfo } from "./live-info.ts";
import { MAX_LIVE_FILE_BYTES, MAX_RELAYS } from "./live-limits.ts";
import { type LiveMeta, liveMetaDict, readLiveMeta, readManifests } from "./live-meta.ts";
import { isWritableTracker } from "./live-text.ts";
import { readTrackers } from "./metainfo.ts";

/** What a source puts in its transport file. */
export interface LiveTransportRecipe {
  readonly info: LiveInfo;
  /** Announce URLs by tier (BEP 12). */
  readonly trackers: readonly (readonly string[])[];
  readonly meta: LiveMeta;
  /** Relays that are always there. */
  readonly relays: readonly PeerAddress[];
  /** HLS manifests of the same stream on the web, where it has any. */
  readonly manifests: readonly string[];
}

/** A checked transport file of a live stream (live protocol: Transport file). */
export interface LiveTransportFile extends LiveTransportRecipe {
  readonly infohash: Infohash;
  /** SHA-1 of the whole file. */
  readonly contentId: ContentId;
  /** The info dictionary's own bytes, whose SHA-1 is the infohash. */
  readonly infoBytes: Uint8Array;
  /** The file as it came. */
  readonly bytes: Uint8Array;
  /** Whether the source's key vouches for the whole file, and not only for the stream. A wrong signature is refused. */
  readonly isSigned: boolean;
}

const FORMAT = "live transport file";
/** Says what the signature is for, so that it counts for nothing else. */
const PURPOSE = latin1Bytes("sluice-transport:");
const SIGNATURE_KEY = latin1Bytes(`3:sig${SIGNATURE_BYTES}:`);

/** The transport file of a stream, in its one canonical form; without `sign` nobody vouches for it. Throws `DecodeError`
 * where a value is outside its limits. */
export function makeLiveTransportFile(
  recipe: LiveTransportRecipe,
  sign?: Ed25519Sign,
): Uint8Array<ArrayBuffer> {
  const tiers = recipe.trackers.filter((tier) => tier.length > 0);
  if (!tiers.flat().every(isWritableTracker)) {
    throw new DecodeError(FORMAT, 0, "a tracker that is not the ASCII URL of one");
  }
  const members: Record<string, BencodeInput | undefined> = {
    announce: tiers[0]?.[0],
    "announce-list": tiers.length > 0 ? tiers : undefined,
    hls: recipe.manifests.length > 0 ? recipe.manifests.map(encodeUtf8) : undefined,
    info: liveInfoDict(recipe.info),
    meta: liveMetaDict(recipe.meta),
    rly: recipe.relays.length > 0 ? encodeEndpoints(recipe.relays) : undefined,
  };
  const unsigned = encodeBencode(bencodeDict(members));
  const signature = sign?.(concatBytes([PURPOSE, unsigned]));
  const bytes = signature ? encodeBencode(bencodeDict({ ...members, sig: signature })) : unsigned;
  if (bytes.length > MAX_LIVE_FILE_BYTES) throw tooLarge();
  return bytes;
}

/** Whether bytes are a transport file whose info dictionary is that of a live stream. Says nothing about the rest: what
 * is no bencoding at all is none, either. Never throws. */
export function isLiveTransportFile(bytes: Uint8Array): boolean {
  if (bytes.length > MAX_LIVE_FILE_BYTES) return false;
  try {
    const info = viewBencode(bytes).get("info");
    return info !== undefined && isLiveInfo(info);
  } catch (thrown) {
    if (thrown instanceof DecodeError) return false;
    throw thrown;
  }
}

/** Reads the transport file of a live stream, and checks the signature where there is one. Throws `DecodeError`. */
export function parseLiveTransportFile(
  bytes: Uint8Array,
  sha1: Sha1,
  verifierOf: Ed25519VerifierOf,
): LiveTransportFile {
  if (bytes.length > MAX_LIVE_FILE_BYTES) throw tooLarge();
  const file = viewBencode(bytes);
  const infoView = file.get("info");
  if (!infoView) throw new DecodeError(FORMAT, 0, "no info dictionary");
  const info = readLiveInfo(infoView);
  const { start, end } = infoView.range;
  const infoBytes = bytes.subarray(start, end);
  const relays = file.get("rly");
  return {
    infohash: infohashOf(sha1(infoBytes)),
    contentId: toHex(sha1(bytes)) as ContentId,
    info,
    infoBytes,
    bytes,
    trackers: readTrackers(file),
    meta: readLiveMeta(file.get("meta")),
    relays: relays ? decodeEndpoints(bytesIn(relays), MAX_RELAYS) : [],
    manifests: readManifests(file.get("hls")),
    isSigned: checkSignature(file, bytes, info, verifierOf),
  };
}

/** The bencoding is canonical, so the file without its signature is what stands before and behind it. */
function checkSignature(
  file: BencodeView,
  bytes: Uint8Array,
  info: LiveInfo,
  verifierOf: Ed25519VerifierOf,
): boolean {
  const view = file.get("sig");
  if (!view) return false;
  const signature = view.bytes();
  if (signature?.length !== SIGNATURE_BYTES) {
    throw new DecodeError(FORMAT, view.range.start, `expected a signature of ${SIGNATURE_BYTES} bytes`);
  }
  const { end } = view.range;
  const start = end - SIGNATURE_BYTES - SIGNATURE_KEY.length;
  const message = concatBytes([PURPOSE, bytes.subarray(0, start), bytes.subarray(end)]);
  if (!verifierOf(info.publicKey)(message, signature)) {
    throw new DecodeError(FORMAT, start, "the signature is not that of the stream's key");
  }
  return true;
}

function bytesIn(view: BencodeView): Uint8Array {
  const bytes = view.bytes();
  if (!bytes) throw new DecodeError(FORMAT, view.range.start, "expected relays as bytes");
  return bytes;
}

function tooLarge(): DecodeError {
  return new DecodeError(FORMAT, MAX_LIVE_FILE_BYTES, `larger than ${MAX_LIVE_FILE_BYTES} bytes`);
}
