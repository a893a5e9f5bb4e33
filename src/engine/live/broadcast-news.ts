import type { Infohash } from "../../base/ids.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { SignedStat } from "../../swarm/live/messages.ts";
import { decodeStat, encodeStat } from "../../wire/live-stat.ts";
import type { BroadcastRequest } from "./broadcast-contract.ts";

/** A STAT names so many trackers and relays at most; viewers read no more. */
const MAX_TOLD_TRACKERS = 8;
const MAX_TOLD_RELAYS = 16;

/** So many bytes of a STAT's 1,024 are for copies and for trackers, besides 16 relays: longer ones are in the transport file alone. */
const MAX_COPY_BYTES = 256;
const MAX_TRACKER_BYTES = 360;

/** What a source says besides its pieces (STAT): whoever came by a link that names none hears of relays, trackers and copies on the web. */
export class BroadcastNews {
  readonly #request: Pick<BroadcastRequest, "relays" | "trackers" | "manifests">;
  readonly #infohash: Infohash;
  readonly #sign: Ed25519Sign;
  #number = 0;

  constructor(
    request: Pick<BroadcastRequest, "relays" | "trackers" | "manifests">,
    stream: { readonly infohash: Infohash; readonly sign: Ed25519Sign },
  ) {
    this.#request = request;
    this.#infohash = stream.infohash;
    this.#sign = stream.sign;
  }

  /** What there is to say now; undefined for nothing. Numbers follow the time, so that they grow over a restart, too. */
  at(epoch: number, nowMs: number, isEnd: boolean): SignedStat | undefined {
    const relays = this.#request.relays.slice(0, MAX_TOLD_RELAYS);
    const trackers = fitting(this.#request.trackers, MAX_TRACKER_BYTES).slice(0, MAX_TOLD_TRACKERS);
    const manifests = fitting(this.#request.manifests, MAX_COPY_BYTES);
    if (!isEnd && relays.length === 0 && trackers.length === 0 && manifests.length === 0) return undefined;
    this.#number = Math.max(this.#number + 1, Math.floor(nowMs));
    const stat = {
      epoch,
      number: this.#number,
      timestampMs: Math.floor(nowMs),
      isEnd,
      relays,
      trackers,
      manifests,
    };
    const bytes = encodeStat(stat, this.#infohash, this.#sign);
    return { value: decodeStat(bytes), bytes };
  }
}

function fitting(urls: readonly string[], bytes: number): readonly string[] {
  let left = bytes;
  return urls.filter((url) => {
    const { length } = encodeUtf8(url);
    const isFitting = length <= left;
    if (isFitting) left -= length;
    return isFitting;
  });
}
