import { after, type Instant } from "../../base/time.ts";
import { type HlsMedia, type HlsSegment, isLiveHls } from "../../media/hls-media.ts";
import { PacketStretch } from "../../media/packet-stretch.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";

import type { HlsLocation } from "../../web-content/hls-fetch.ts";
import { HlsSegmentFetcher } from "../../web-content/hls-segment-fetcher.ts";
import type { WebClient } from "../../web-content/web-client.ts";
import type { OriginRequest, WebOrigin } from "../contract.ts";
import { alignWhole, fetchMediaManifest } from "../input/source-hls.ts";

/** Minimum time between two requests of the manifest. */
const RELOAD_MS = 1_000;
/** Readers begin this many target durations before the end of a live list. */
const BEHIND_TARGETS = 3;

/** HLS of a web server as a stretch of packets. Only the wanted segments are fetched. */
export class HlsOrigin implements WebOrigin {
  readonly #client: WebClient;
  readonly #segments: HlsSegmentFetcher;
  readonly #limitBytes: number;
  #location: HlsLocation;
  #playlist: HlsMedia | undefined;
  #reloadAt: Instant | undefined;
  #stretch: PacketStretch;
  /** The segments in the stretch: `[first, end)`. */
  #first = 0;
  #end = 0;

  constructor(client: WebClient, location: HlsLocation, limitBytes: number) {
    this.#client = client;
    this.#segments = new HlsSegmentFetcher(client);
    this.#location = location;
    this.#limitBytes = limitBytes;
    this.#stretch = new PacketStretch(limitBytes);
  }

  get stretch(): PacketStretch {
    return this.#stretch;
  }

  async bring(request: OriginRequest, signal: AbortSignal): Promise<boolean> {
    let number = this.#playlist && this.#numberOf(request);
    if (number === undefined) {
      await this.#reload(signal);
      number = this.#numberOf(request);
    }
    if (number === undefined) return false;
    const bytes = await this.#segments.segment(this.#segment(number)!, "ts", this.#location, signal, 0);
    this.#add(number, alignWhole(bytes).packets);
    return true;
  }

  #add(number: number, packets: Uint8Array): void {
    const { start, end } = this.#stretch;
    // If the start of the first segment was dropped, the two would not be adjacent.
    if (number === this.#first - 1 && this.#first < this.#end && start === 0) {
      const behind = this.#stretch.packets(start, end)!;
      this.#stretch = new PacketStretch(this.#limitBytes);
      this.#stretch.push(packets);
      this.#stretch.push(behind);
      this.#first = number;
      return;
    }
    if (number !== this.#end || this.#first === this.#end) {
      this.#stretch = new PacketStretch(this.#limitBytes);
      this.#first = number;
    }
    this.#stretch.push(packets);
    this.#end = number + 1;
  }

  /** Returns the segment to fetch for a request; undefined if none is listed. */
  #numberOf({ reference, side }: OriginRequest): number | undefined {
    const { clocks } = this.#stretch;
    const first = clocks[0];
    const last = clocks.at(-1);
    if (this.#first === this.#end || !first || !last) return this.#begin();
    if (side === "before") return this.#listed(this.#first - 1);
    if (side === "after") return this.#listed(this.#end);
    const seconds = (to: number, from: number) =>
      deltaTicks(Math.floor(to / 300), Math.floor(from / 300)) / TICKS_PER_SECOND;
    const ahead = seconds(reference, last.reference);
    if (ahead >= 0) return this.#walk(this.#end, ahead, 1);
    const behind = seconds(first.reference, reference);
    // The clock value is inside the stretch, and yet the piece was not found: no fetch can help.
    return behind > 0 ? this.#walk(this.#first - 1, behind, -1) : undefined;
  }

  /** Returns the segment `seconds` after the start of segment `from`, or before its end. */
  #walk(from: number, seconds: number, step: 1 | -1): number | undefined {
    let rest = seconds;
    for (let number = from; ; number += step) {
      const segment = this.#segment(number);
      if (!segment) return undefined;
      rest -= segment.durationSeconds;
      // Clock values are ahead of presentation time: prefer the earlier segment.
      if (rest <= 0.5 && !segment.isGap) return number;
    }
  }

  /** Returns the segment at which a reader would begin. */
  #begin(): number | undefined {
    const { segments, targetSeconds } = this.#playlist!;
    if (!isLiveHls(this.#playlist!)) return segments[0]?.number;
    let seconds = 0;
    for (let i = segments.length - 1; i >= 0; i--) {
      seconds += segments[i]!.durationSeconds;
      if (seconds >= BEHIND_TARGETS * targetSeconds) return this.#listed(segments[i]!.number);
    }
    return segments.find(({ isGap }) => !isGap)?.number;
  }

  #listed(number: number): number | undefined {
    const segment = this.#segment(number);
    return segment && !segment.isGap ? number : undefined;
  }

  #segment(number: number): HlsSegment | undefined {
    const { firstNumber, segments } = this.#playlist!;
    return segments[number - firstNumber];
  }

  async #reload(signal: AbortSignal): Promise<void> {
    const { clock } = this.#client;
    if (this.#playlist && (!isLiveHls(this.#playlist) || clock.now() < (this.#reloadAt ?? 0))) return;
    this.#reloadAt = after(clock.now(), RELOAD_MS);
    const fetched = await fetchMediaManifest(this.#client, this.#location, signal);
    this.#playlist = fetched.playlist;
    this.#location = fetched.location;
  }
}
