import type { Infohash } from "../../base/ids.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { SignedStat } from "../../protocol/live/messages.ts";
import { encodeBencode } from "../../wire/bencode-encode.ts";
import { MAX_STAT_BYTES } from "../../wire/live/limits.ts";
import { decodeStat, encodeStat } from "../../wire/live/stat.ts";
import { SUCCESSOR_BYTES } from "../../wire/live/successor.ts";
import { type LiveVariant, variantList } from "../../wire/live/variants.ts";
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
/** The keys and lengths of all members, and those of each entry of a list. */
const FRAME_BYTES = 64;
const ENTRY_BYTES = 8;
/** Bytes of a relay. */
const RELAY_BYTES = 18;

/** Makes the STAT messages of a source: viewers with a link without addresses learn its relays, trackers and web
 * copies from them. */
export class StatSigner {
  readonly #request: Pick<BroadcastRequest, "relays" | "trackers" | "manifests">;
  readonly #infohash: Infohash;
  readonly #sign: Ed25519Sign;
  readonly #successor: Uint8Array | undefined;
  #variants: readonly LiveVariant[] = [];
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

  /** Sets the qualities of the broadcast; one or none: there is only this one. */
  offer(variants: readonly LiveVariant[]): void {
    this.#variants = variants;
  }

  /** Returns the STAT to send now; undefined if it would be empty. Its number follows the time, so that it also grows
   * across restarts. */
  at(epoch: number, nowMs: number, isEnd: boolean): SignedStat | undefined {
    const relays = this.#request.relays.slice(0, MAX_STAT_RELAYS);
    const successor = this.#successor;
    const list = variantList(this.#variants);
    const variants = list && this.#variants;
    const trackerBytes = MAX_TRACKER_BYTES - (successor ? SUCCESSOR_BYTES + KEY_BYTES : 0);
    // With other qualities, there is less room for what the transport file contains as well.
    let left = list
      ? MAX_STAT_BYTES - FRAME_BYTES - encodeBencode(list).length - RELAY_BYTES * relays.length
      : Number.POSITIVE_INFINITY;
    if (successor) left -= SUCCESSOR_BYTES + KEY_BYTES;
    const trackers = fittingUrls(
      this.#request.trackers,
      Math.min(trackerBytes, left),
      list && ENTRY_BYTES,
    ).slice(0, MAX_TRACKERS);
    for (const { length } of trackers) left -= length + ENTRY_BYTES;
    const manifests = fittingUrls(
      this.#request.manifests,
      Math.min(MAX_COPY_BYTES, left),
      list && ENTRY_BYTES,
    );
    const isEmpty =
      relays.length === 0 && trackers.length === 0 && manifests.length === 0 && !successor && !list;
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
      ...(variants && { variants }),
    };
    const bytes = encodeStat(stat, this.#infohash, this.#sign);
    return { value: decodeStat(bytes), bytes };
  }
}

function fittingUrls(urls: readonly string[], bytes: number, entryBytes = 0): readonly string[] {
  let leftBytes = bytes;
  return urls.filter((url) => {
    const length = encodeUtf8(url).length + entryBytes;
    const fits = length <= leftBytes;
    if (fits) leftBytes -= length;
    return fits;
  });
}
