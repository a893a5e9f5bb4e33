import { DecodeError } from "../base/errors.ts";
import type { Sha1 } from "../base/ids.ts";
import type { Ed25519VerifierOf, Sha256 } from "../base/signature.ts";
import { viewBencode } from "../wire/bencode-view.ts";
import { isLiveInfo } from "../wire/live-info.ts";
import { type LiveTransportFile, parseLiveTransportFile } from "../wire/live-transport.ts";
import {
  type Info,
  MAX_INFO_BYTES,
  MAX_TRANSPORT_FILE_BYTES,
  makeTransportFile,
  parseInfo,
  parseTransportFile,
  type TransportFile,
} from "../wire/metainfo.ts";
import { piecesByRoot } from "../wire/piece-layers.ts";
import { isV2Info, parseV2Info, parseV2TransportFile } from "../wire/v2-metainfo.ts";

/** A transport file that we hold: of files, or of a live stream. */
export type KnownFile =
  | { readonly kind: "vod"; readonly file: TransportFile }
  | { readonly kind: "live"; readonly file: LiveTransportFile };

/** What reading transport files takes. */
export interface FileChecks {
  readonly sha1: Sha1;
  readonly sha256: Sha256;
  readonly ed25519Verifier: Ed25519VerifierOf;
}

/** Reads a transport file of either kind; its info dictionary tells which. One of files may be larger where we made it
 * ourselves: `limitBytes`. Throws `DecodeError`. */
export function readKnownFile(
  bytes: Uint8Array,
  checks: FileChecks,
  limitBytes = MAX_TRANSPORT_FILE_BYTES,
): KnownFile {
  if (bytes.length <= limitBytes) {
    const info = viewBencode(bytes).get("info");
    if (info && isLiveInfo(info)) {
      return { kind: "live", file: parseLiveTransportFile(bytes, checks.sha1, checks.ed25519Verifier) };
    }
    if (info && isV2Info(info)) {
      return { kind: "vod", file: parseV2TransportFile(bytes, checks.sha1, checks.sha256, limitBytes) };
    }
  }
  return { kind: "vod", file: parseTransportFile(bytes, checks.sha1, limitBytes) };
}

/** What the content calls itself. */
export function titleOf(known: KnownFile): string {
  return known.kind === "vod" ? known.file.info.name : (known.file.meta.title ?? known.file.info.name);
}

/** The transport file of files around metadata that peers sent, with the trackers of the link, and the piece layers of its
 * layout where it has any; or why there is none. Hostile metadata may read well by itself and not as part of a file: nested as
 * deep as may be, or with a root that only more pieces than the file has lead to. */
export function fileOfMetadata(
  infoBytes: Uint8Array,
  { layers = [], pieceHashes }: Pick<Info, "layers" | "pieceHashes">,
  trackers: readonly (readonly string[])[],
  { sha1, sha256 }: Pick<FileChecks, "sha1" | "sha256">,
): TransportFile | string {
  const bytes = makeTransportFile(infoBytes, trackers, piecesByRoot(layers, pieceHashes));
  const limitBytes = bytes.length + MAX_INFO_BYTES;
  try {
    return isV2Info(viewBencode(infoBytes))
      ? parseV2TransportFile(bytes, sha1, sha256, limitBytes)
      : parseTransportFile(bytes, sha1, limitBytes);
  } catch (thrown) {
    if (thrown instanceof DecodeError) return thrown.message;
    throw thrown;
  }
}

/** The info dictionary that peers sent, of either version; of version 2 it may lack layers. Throws `DecodeError`. */
export function infoOfMetadata(infoBytes: Uint8Array, sha256: Sha256): Info {
  if (infoBytes.length <= MAX_INFO_BYTES && isV2Info(viewBencode(infoBytes)))
    return parseV2Info(infoBytes, sha256);
  return parseInfo(infoBytes);
}
