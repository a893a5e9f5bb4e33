import type { Infohash } from "../../base/ids.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { SignedStat } from "../../protocol/live/messages.ts";
import { decodeStat, encodeStat } from "../../wire/live/stat.ts";
import { SUCCESSOR_BYTES } from "../../wire/live/successor.ts";
import type { BroadcastRequest } from "./broadcast-contract.ts";

/** Limits of the trackers and relays in a STAT; viewers read no more. */
const MAX_TRACKERS = 8;
const MAX_STAT_RELAYS = 16;

/** Shares of a STAT's 1,024 bytes for web copies and trackers, besides 16 relays. Longer URLs are in the transport
 * file only. */
const MAX_COPY_BYTES = 256;
const MAX_TRACKER_BYTES = 360;
/** The key and length of the successor record. */
const KEY_BYTES = 10;

/** Makes the STAT messages of a source: viewers with a link without addresses learn its relays, trackers and web
 * copies from them. */
export class StatSigner {
  readonly #request: Pick<BroadcastRequest, "relays" | "trackers" | "manifests">;
  readonly #infohash: Infohash;
  readonly #sign: Ed25519Sign;
  readonly #successor: Uint8Array | undefined;
  #number = 0;

  constructor(
    request: Pick<BroadcastRequest, "relays" | "trackers" | "manifests">,
    stream: { readonly infohash: Infohash; readonly sign: Ed25519Sign; readonly successor?: Uint8Array },
  ) {
    this.#request = request;
    this.#infohash = stream.infohash;
    this.#sign = stream.sign;
    this.#successor = stream.successor;
  }

  /** Returns the STAT to send now; undefined if it would be empty. Its number follows the time, so that it also grows
   * across restarts. */
  at(epoch: number, nowMs: number, isEnd: boolean): SignedStat | undefined {
    const relays = this.#request.relays.slice(0, MAX_STAT_RELAYS);
    const successor = this.#successor;
    const trackerBytes = MAX_TRACKER_BYTES - (successor ? SUCCESSOR_BYTES + KEY_BYTES : 0);
    const trackers = fittingUrls(this.#request.trackers, trackerBytes).slice(0, MAX_TRACKERS);
    const manifests = fittingUrls(this.#request.manifests, MAX_COPY_BYTES);
    const isEmpty = relays.length === 0 && trackers.length === 0 && manifests.length === 0 && !successor;
    if (!isEnd && isEmpty) return undefined;
    this.#number = Math.max(this.#number + 1, Math.floor(nowMs));
    const stat = {
      epoch,
      number: this.#number,
      timestampMs: Math.floor(nowMs),
      isEnd,
      relays,
      trackers,
      manifests,
      ...(successor && { successor }),
    };
    const bytes = encodeStat(stat, this.#infohash, this.#sign);
    return { value: decodeStat(bytes), bytes };
  }
}

function fittingUrls(urls: readonly string[], bytes: number): readonly string[] {
  let leftBytes = bytes;
  return urls.filter((url) => {
    const { length } = encodeUtf8(url);
    const fits = length <= leftBytes;
    if (fits) leftBytes -= length;
    return fits;
  });
}
