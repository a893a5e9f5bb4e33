import { DecodeError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Ed25519VerifierOf, Sha256 } from "../base/signature.ts";
import { isLiveInfo } from "../wire/live/info.ts";
import { MAX_LIVE_FILE_BYTES } from "../wire/live/limits.ts";
import { type LiveTransportFile, parseLiveTransportFile } from "../wire/live/transport-file.ts";
import {
  type Info,
  MAX_INFO_BYTES,
  MAX_TRANSPORT_FILE_BYTES,
  makeTransportFile,
  parseInfo,
  parseTransportFile,
  type TransportFile,
  viewInfo,
  viewTransportFile,
} from "../wire/torrent/metainfo.ts";
import { pieceLayersByRoot } from "../wire/torrent/piece-layers.ts";
import { isV2Info, parseV2Info, parseV2TransportFile } from "../wire/torrent/v2-metainfo.ts";

/** A transport file that this engine holds: of files or of a live stream. */
export type KnownFile =
  | { readonly kind: "vod"; readonly file: TransportFile }
  | { readonly kind: "live"; readonly file: LiveTransportFile };

/** Hash and signature functions that reading a transport file needs. */
export interface FileChecks {
  readonly sha1: Sha1;
  readonly sha256: Sha256;
  readonly ed25519Verifier: Ed25519VerifierOf;
}

/** Reads a transport file; its info dictionary shows which kind it is. `limitBytes` raises the size limit for files that this
 * engine made itself. Throws `DecodeError`. */
export function readKnownFile(
  bytes: Uint8Array,
  checks: FileChecks,
  limitBytes = MAX_TRANSPORT_FILE_BYTES,
): KnownFile {
  if (bytes.length <= limitBytes) {
    const info = viewTransportFile(bytes).get("info");
    if (info && isLiveInfo(info)) {
      return { kind: "live", file: parseLiveTransportFile(bytes, checks.sha1, checks.ed25519Verifier) };
    }
    if (info && isV2Info(info)) {
      return { kind: "vod", file: parseV2TransportFile(bytes, checks.sha1, checks.sha256, limitBytes) };
    }
  }
  return { kind: "vod", file: parseTransportFile(bytes, checks.sha1, limitBytes) };
}

/** The display name of the content. */
export function titleOf(known: KnownFile): string {
  return known.kind === "vod" ? known.file.info.name : (known.file.meta.title ?? known.file.info.name);
}

/** Builds a transport file from metadata that peers sent, the trackers of the link, and the piece layers if there are any. Returns
 * the reason as text if the result is invalid: hostile metadata can be valid alone and invalid in a file (nested to the depth limit,
 * or with a root that needs more pieces than the file has). */
export function fileOfMetadata(
  infoBytes: Uint8Array,
  { layers = [], pieceHashes }: Pick<Info, "layers" | "pieceHashes">,
  trackers: readonly (readonly string[])[],
  { sha1, sha256 }: Pick<FileChecks, "sha1" | "sha256">,
): TransportFile | string {
  const bytes = makeTransportFile(infoBytes, trackers, pieceLayersByRoot(layers, pieceHashes));
  const limitBytes = bytes.length + MAX_INFO_BYTES;
  try {
    return isV2Info(viewInfo(infoBytes))
      ? parseV2TransportFile(bytes, sha1, sha256, limitBytes)
      : parseTransportFile(bytes, sha1, limitBytes);
  } catch (thrown) {
    if (thrown instanceof DecodeError) return thrown.message;
    throw thrown;
  }
}

/** Reads an info dictionary that peers sent, of version 1 or 2; version 2 may lack piece layers. Throws `DecodeError`. */
export function infoOfMetadata(infoBytes: Uint8Array, sha256: Sha256): Info {
  if (infoBytes.length <= MAX_INFO_BYTES && isV2Info(viewInfo(infoBytes)))
    return parseV2Info(infoBytes, sha256);
  return parseInfo(infoBytes);
}

/** Returns true if metadata from peers describes a live stream. Throws `DecodeError` if it is malformed. */
export function isLiveMetadata(infoBytes: Uint8Array): boolean {
  return isLiveInfo(viewInfo(infoBytes));
}

/** Builds an unsigned transport file from the metadata of a live stream and the trackers of the link. The metadata bytes do not
 * change, because their hash is the infohash. Throws `DecodeError` if the metadata is invalid. */
export function unsignedLiveFile(
  infoBytes: Uint8Array,
  trackers: readonly (readonly string[])[],
  checks: FileChecks,
): LiveTransportFile {
  const whole = makeTransportFile(infoBytes, trackers);
  const bytes = whole.length <= MAX_LIVE_FILE_BYTES ? whole : makeTransportFile(infoBytes, []);
  return parseLiveTransportFile(bytes, checks.sha1, checks.ed25519Verifier);
}
