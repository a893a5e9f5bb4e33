import type { PeerAddress } from "../../base/address.ts";
import { concatBytes, latin1Bytes, toHex } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";
import { type FileHash, type Infohash, infohashOf, type Sha1 } from "../../base/ids.ts";
import { type Ed25519Sign, type Ed25519VerifierOf, SIGNATURE_BYTES } from "../../base/signature.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import { type BencodeInput, bencodeDict, encodeBencode } from "../bencode-encode.ts";
import { type BencodeView, viewBencode } from "../bencode-view.ts";
import { readTrackers } from "../torrent/metainfo.ts";
import { decodeEndpoints, encodeEndpoints } from "./endpoint.ts";
import { type LiveInfo, liveInfoDict, readLiveInfo } from "./info.ts";
import { MAX_LIVE_FILE_BYTES, MAX_RELAYS } from "./limits.ts";
import { type LiveMeta, liveMetaDict, readLiveMeta, readManifests } from "./meta.ts";
import { isLatin1TrackerUrl } from "./text.ts";
import { type LiveVariant, readVariants, variantList } from "./variants.ts";

/** The contents of the transport file of a live stream. */
interface LiveTransportContents {
  readonly info: LiveInfo;
  /** Announce URLs by tier (BEP 12). */
  readonly trackers: readonly (readonly string[])[];
  readonly meta: LiveMeta;
  /** Relays, which are always reachable. */
  readonly relays: readonly PeerAddress[];
  /** HLS manifests of the same stream on the web. */
  readonly manifests: readonly string[];
  /** The qualities of the broadcast, this stream among them; absent if there is only one. */
  readonly variants?: readonly LiveVariant[];
}

/** A checked transport file of a live stream (live protocol: Transport file). */
export interface LiveTransportFile extends LiveTransportContents {
  readonly infohash: Infohash;
  /** SHA-1 of the whole file. */
  readonly fileHash: FileHash;
  /** The bytes of the info dictionary; their SHA-1 is the infohash. */
  readonly infoBytes: Uint8Array;
  /** The unmodified file. */
  readonly bytes: Uint8Array;
  /** The source has signed the whole file. A file with a wrong signature is refused. */
  readonly isSigned: boolean;
}

const FORMAT = "live transport file";
/** Prefix of the signed message, so that the signature is valid for this purpose only. */
const PURPOSE = latin1Bytes("sluice-transport:");
const SIGNATURE_KEY = latin1Bytes(`3:sig${SIGNATURE_BYTES}:`);

/** Builds the transport file of a stream in canonical form.
 * @param sign Signs the file; omitted for an unsigned file.
 * @throws DecodeError if a value is out of range. */
export function makeLiveTransportFile(
  contents: LiveTransportContents,
  sign?: Ed25519Sign,
): Uint8Array<ArrayBuffer> {
  const tiers = contents.trackers.filter((tier) => tier.length > 0);
  if (!tiers.flat().every(isLatin1TrackerUrl)) {
    throw new DecodeError(FORMAT, 0, "expected tracker URLs in ASCII");
  }
  const members: Record<string, BencodeInput | undefined> = {
    announce: tiers[0]?.[0],
    "announce-list": tiers.length > 0 ? tiers : undefined,
    hls: contents.manifests.length > 0 ? contents.manifests.map(encodeUtf8) : undefined,
    info: liveInfoDict(contents.info),
    meta: liveMetaDict(contents.meta),
    rly: contents.relays.length > 0 ? encodeEndpoints(contents.relays) : undefined,
    var: variantList(contents.variants),
  };
  const unsigned = encodeBencode(bencodeDict(members));
  const signature = sign?.(concatBytes([PURPOSE, unsigned]));
  const bytes = signature ? encodeBencode(bencodeDict({ ...members, sig: signature })) : unsigned;
  if (bytes.length > MAX_LIVE_FILE_BYTES) throw tooLarge();
  return bytes;
}

/** Parses the transport file of a live stream and verifies its signature, if present. Throws `DecodeError`. */
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
  const variants = readVariants(file.get("var"));
  return {
    infohash: infohashOf(sha1(infoBytes)),
    fileHash: toHex(sha1(bytes)) as FileHash,
    info,
    infoBytes,
    bytes,
    trackers: readTrackers(file),
    meta: readLiveMeta(file.get("meta")),
    relays: relays ? decodeEndpoints(bytesIn(relays), MAX_RELAYS) : [],
    manifests: readManifests(file.get("hls")),
    ...(variants.length > 0 && { variants }),
    isSigned: checkSignature(file, bytes, info, verifierOf),
  };
}

/** Returns true if a valid signature is present, false if there is none. The encoding is canonical, so the signed file is the
 * bytes before and after the signature. Throws `DecodeError` on a wrong signature. */
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
    throw new DecodeError(FORMAT, start, "the signature does not match the key of the stream");
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
