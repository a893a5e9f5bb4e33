import { addressScope } from "../../base/address.ts";
import { viewBencode } from "../../wire/bencode-view.ts";
import { isLiveInfo } from "../../wire/live-info.ts";
import { MAX_LIVE_FILE_BYTES } from "../../wire/live-limits.ts";
import { type LiveTransportFile, parseLiveTransportFile } from "../../wire/live-transport.ts";
import { makeTransportFile } from "../../wire/metainfo.ts";
import type { ContentFile, TransferContent } from "../contract.ts";
import type { FileChecks } from "../known-file.ts";
import type { LiveContent } from "./contract.ts";

/** Content that is known to be a live stream. */
export type LiveTransferContent = TransferContent & { readonly live: LiveContent };

/** A live stream as it is opened to be watched. Its relays are the first peers; those at home only where the asker may
 * reach them: else a transport file could make us knock at every door of the network. */
export function watchedContent(
  file: LiveTransportFile,
  options: { readonly allowPrivateUrls: boolean },
): LiveTransferContent {
  const peers = file.relays.filter(({ host }) => options.allowPrivateUrls || addressScope(host) === "global");
  return { infohash: file.infohash, live: { file, role: "viewer" }, trackers: [], peers };
}

/** A live stream as the one file that players see: it has no size. */
export function liveFiles({ info }: LiveTransportFile): readonly ContentFile[] {
  const [ending, mime] = info.container === "hls-fmp4" ? ["mp4", "video/mp4"] : ["ts", "video/mp2t"];
  return [{ index: 0, name: `${info.name}.${ending}`, size: 0, offset: 0, mime, isPlayable: true }];
}

/** Whether metadata that peers sent is that of a live stream. Throws `DecodeError` where it is nothing readable. */
export function isLiveMetadata(infoBytes: Uint8Array): boolean {
  return isLiveInfo(viewBencode(infoBytes));
}

/** The transport file around the metadata of a live stream, with the trackers of the link: nobody has signed it. The
 * metadata stays byte for byte, since its hash is the stream's name. Throws `DecodeError` where it is of no use. */
export function unsignedLiveFile(
  infoBytes: Uint8Array,
  trackers: readonly (readonly string[])[],
  checks: FileChecks,
): LiveTransportFile {
  const whole = makeTransportFile(infoBytes, trackers);
  const bytes = whole.length <= MAX_LIVE_FILE_BYTES ? whole : makeTransportFile(infoBytes, []);
  return parseLiveTransportFile(bytes, checks.sha1, checks.ed25519Verifier);
}
