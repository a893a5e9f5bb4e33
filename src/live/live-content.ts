import { addressScope } from "../base/address.ts";
import type { ContentFile, TransferContent } from "../transfer/contract.ts";
import type { LiveContent } from "../transfer/live-content.ts";
import type { LiveTransportFile } from "../wire/live/transport-file.ts";

/** The content of a live stream. */
export type LiveTransferContent = TransferContent & { readonly live: LiveContent };

/** Returns the content for watching a stream. Its relays are the first peers. Local addresses are used only if the
 * caller may reach the local network: otherwise a transport file could make this machine connect to any local host. */
export function watchedContent(
  file: LiveTransportFile,
  options: { readonly allowPrivateUrls: boolean },
): LiveTransferContent {
  const peers = file.relays.filter(({ host }) => options.allowPrivateUrls || addressScope(host) === "global");
  return { infohash: file.infohash, live: { file, role: "viewer" }, trackers: [], peers };
}

/** Returns the live stream as a single file for players, without a size. */
export function liveFiles({ info }: LiveTransportFile): readonly ContentFile[] {
  const [ending, mime] = info.container === "hls-fmp4" ? ["mp4", "video/mp4"] : ["ts", "video/mp2t"];
  return [{ index: 0, name: `${info.name}.${ending}`, size: 0, offset: 0, mime, isPlayable: true }];
}
