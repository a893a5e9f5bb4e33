import { SluiceError } from "../../base/errors.ts";
import { after, type Instant } from "../../base/time.ts";
import { type HlsMedia, type HlsSegment, isLiveHls } from "../../media/hls-media.ts";
import { PacketStretch } from "../../media/packet-stretch.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { PacketAligner } from "../../media/ts-align.ts";
import { fetchManifest, type HlsPlace } from "../http/hls-fetch.ts";
import { HlsParts } from "../http/hls-parts.ts";
import type { WebClient } from "../http/web-client.ts";
import { variantPlace } from "./source-hls.ts";
import type { OriginWish, WebOrigin } from "./web-origin.ts";

/** A manifest is not read again sooner. */
const RELOAD_MS = 1_000;
/** Sources begin so many target durations before the end of a list. */
const BEHIND_TARGETS = 3;

/** HLS of a web server as a stretch of packets, of which only those segments are fetched that are wanted. */
export class HlsOrigin implements WebOrigin {
  readonly #client: WebClient;
  readonly #parts: HlsParts;
  readonly #limitBytes: number;
  #place: HlsPlace;
  #playlist: HlsMedia | undefined;
  #reloadAt: Instant | undefined;
  #stretch: PacketStretch;
  /** The segments of the stretch, half-open. */
  #first = 0;
  #end = 0;

  constructor(client: WebClient, place: HlsPlace, limitBytes: number) {
    this.#client = client;
    this.#parts = new HlsParts(client);
    this.#place = place;
    this.#limitBytes = limitBytes;
    this.#stretch = new PacketStretch(limitBytes);
  }

  get stretch(): PacketStretch {
    return this.#stretch;
  }

  async bring(wish: OriginWish, signal: AbortSignal): Promise<boolean> {
    let number = this.#playlist && this.#numberOf(wish);
    if (number === undefined) {
      await this.#reload(signal);
      number = this.#numberOf(wish);
    }
    if (number === undefined) return false;
    const packets = await this.#packets(this.#segment(number)!, signal);
    this.#add(number, packets);
    return true;
  }

  rest(): void {}

  #add(number: number, packets: Uint8Array): void {
    const { start, end } = this.#stretch;
    // What has left of the first segment would be missing between the two.
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

  /** The segment to fetch for a wish; undefined where none is listed. */
  #numberOf({ reference, side }: OriginWish): number | undefined {
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
    // Within what is here, and yet not found: there is nothing to fetch.
    return behind > 0 ? this.#walk(this.#first - 1, behind, -1) : undefined;
  }

  /** The segment that lies so many seconds from the beginning of this one on, or from its end back. */
  #walk(from: number, seconds: number, step: 1 | -1): number | undefined {
    let rest = seconds;
    for (let number = from; ; number += step) {
      const segment = this.#segment(number);
      if (!segment) return undefined;
      rest -= segment.durationSeconds;
      // Clocks run ahead of what is shown: rather one too few than one too many.
      if (rest <= 0.5 && !segment.isGap) return number;
    }
  }

  /** Where a source would begin to read. */
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
    let fetched = await fetchManifest(this.#client, this.#place, signal);
    if (fetched.playlist.kind === "master")
      fetched = await fetchManifest(this.#client, variantPlace(fetched.playlist, fetched.place), signal);
    if (fetched.playlist.kind === "master")
      throw new SluiceError("broken_media", "this HLS manifest leads to another list of variants");
    this.#playlist = fetched.playlist;
    this.#place = fetched.place;
  }

  async #packets(segment: HlsSegment, signal: AbortSignal): Promise<Uint8Array> {
    const bytes = await this.#parts.segment(segment, "ts", this.#place, signal, 0);
    const aligner = new PacketAligner();
    const head = aligner.push(bytes);
    const tail = aligner.finish();
    const packets = new Uint8Array(head.length + tail.length);
    packets.set(head);
    packets.set(tail, head.length);
    return packets;
  }
}
