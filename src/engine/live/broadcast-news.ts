import type { Infohash } from "../../base/ids.ts";
import type { Ed25519Sign } from "../../base/signature.ts";
import type { SignedStat } from "../../swarm/live/messages.ts";
import { decodeStat, encodeStat } from "../../wire/live-stat.ts";
import type { BroadcastRequest } from "./broadcast-contract.ts";

/** A STAT names so many trackers and relays at most; viewers read no more. */
const MAX_TOLD_TRACKERS = 8;
const MAX_TOLD_RELAYS = 16;

/** The rest of a STAT is for relays and trackers: long URLs are in the transport file alone. */
const MAX_TOLD_URL_LENGTH = 256;

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
    const trackers = this.#request.trackers.slice(0, MAX_TOLD_TRACKERS);
    const manifests = fitting(this.#request.manifests);
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

function fitting(manifests: readonly string[]): readonly string[] {
  let left = MAX_TOLD_URL_LENGTH;
  return manifests.filter((url) => {
    const isFitting = url.length <= left;
    if (isFitting) left -= url.length;
    return isFitting;
  });
}
