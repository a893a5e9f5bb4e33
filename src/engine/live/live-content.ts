import { addressScope } from "../../base/address.ts";
import type { LiveTransportFile } from "../../wire/live-transport.ts";
import type { ContentFile, TransferContent } from "../contract.ts";
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
