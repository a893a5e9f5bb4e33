import { SluiceError } from "../../base/errors.ts";
import { trackLanguage } from "../../media/language.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../../media/timestamps.ts";
import { firstTicks, interleaveTs } from "../../remux/ts-interleave.ts";
import type { SegmentName } from "../engine.ts";
import type { SegmentBytes } from "../segment-cache.ts";
import type { LivePosition, SegmentSource, VariantFacts } from "../segment-source.ts";
import type { HlsFeed } from "./hls-feed.ts";
import type { HlsProgramme } from "./hls-programme.ts";

/** Runs of segments that share their clocks, of which it is remembered how the two manifests lie to each other. */
const MAX_SHIFTS = 16;
/** The sound's manifest is read again so often while it lags behind; then the picture goes on without it. */
const MAX_LATE_READS = 4;

/**
 * HLS whose sound comes in a playlist of its own, as one transport stream: with each segment of the picture those of the
 * sound that begin in it. Numbers of the two need not agree (RFC 8216 6.2.4), so what belongs together is found by time:
 * the first segments that were fetched tell how the manifests lie to each other.
 */
export class HlsWhole implements SegmentSource {
  readonly container = "ts";
  readonly #programme: HlsProgramme;
  readonly #sound: HlsFeed;
  readonly #track: number;
  readonly #language: string;
  /** By run of segments: what to add to the time of sound, in seconds, for that of the picture. */
  readonly #shifts = new Map<string, number>();

  /** Throws `unsupported_container` where they do not come as MPEG-TS, or as audio without a container. */
  constructor(programme: HlsProgramme, sound: HlsFeed, track: number, language: string | undefined) {
    if (programme.main.container !== "ts" || sound.container !== "ts") {
      const what = "this stream has picture and sound apart, in fragmented MP4; it is played as HLS only";
      throw new SluiceError("unsupported_container", what);
    }
    this.#programme = programme;
    this.#sound = sound;
    this.#track = track;
    this.#language = trackLanguage(language);
  }

  get name(): string {
    return `${this.#programme.name()} with ${this.#track}`;
  }

  get isLive(): boolean {
    return this.#programme.main.isLive;
  }

  get variants(): readonly VariantFacts[] {
    return this.#programme.variants;
  }

  get variantIndex(): number {
    return this.#programme.variantIndex;
  }

  manifest(): Promise<string> {
    return Promise.reject(new SluiceError("unsupported_container", "this is one stream, without a manifest"));
  }

  async first(): Promise<number> {
    return this.#programme.main.first();
  }

  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.#programme.main.reach(index, signal);
  }

  find(_kind: SegmentName["kind"], number: number, signal: AbortSignal): Promise<number> {
    return this.#programme.main.find(number, signal);
  }

  async make(_kind: unknown, index: number, _track: unknown, signal: AbortSignal): Promise<SegmentBytes> {
    const { main } = this.#programme;
    const picture = await this.#fetch(main, index, signal);
    await this.#sound.refresh(signal);
    const shift = await this.#shiftOf(picture, index, signal);
    if (shift === undefined) return picture;
    const start = main.startSeconds(index) - shift;
    const isFirst = index === main.playlist.firstNumber && !this.isLive;
    const isLast = !this.isLive && index === main.playlist.segments.at(-1)?.number;
    const bounds = {
      start: isFirst ? Number.NEGATIVE_INFINITY : start,
      end: isLast ? Number.POSITIVE_INFINITY : main.startSeconds(index + 1) - shift,
    };
    const numbers = await this.#numbers(bounds, signal);
    const sound: Uint8Array[] = [];
    for (const number of numbers) sound.push(await this.#fetch(this.#sound, number, signal));
    if (numbers.length > 0 && !isFirst) this.#check(picture, index, sound[0]!, numbers[0]!);
    return interleaveTs(picture, sound, this.#language);
  }

  livePosition(): LivePosition | undefined {
    return this.#programme.main.livePosition();
  }

  #fetch(feed: HlsFeed, number: number, signal: AbortSignal): Promise<SegmentBytes> {
    const { parts } = this.#programme;
    return parts.segment(feed.segment(number), "ts", feed.place, signal, feed.startSeconds(number));
  }

  /** Durations in manifests are rounded: what they add up to over days is measured anew before it is half a segment. */
  #check(picture: Uint8Array, index: number, sound: Uint8Array, number: number): void {
    const key = this.#shiftKey(index);
    const shift = this.#shifts.get(key);
    const measured = this.#measured(picture, index, sound, number);
    if (shift === undefined || measured === undefined) return;
    if (Math.abs(measured - shift) > this.#sound.segment(number).durationSeconds / 2)
      this.#shifts.delete(key);
  }

  #measured(picture: Uint8Array, index: number, sound: Uint8Array, number: number): number | undefined {
    const [seen, heard] = [firstTicks(picture), firstTicks(sound)];
    if (seen === undefined || heard === undefined) return undefined;
    const apart = deltaTicks(heard, seen) / TICKS_PER_SECOND;
    return this.#programme.main.startSeconds(index) + apart - this.#sound.startSeconds(number);
  }

  #shiftKey(index: number): string {
    const { main } = this.#programme;
    return `${main.epoch} ${this.#sound.epoch} ${main.segment(index).discontinuity}`;
  }

  /** How the two manifests lie to each other around this segment, by the times in a segment of each. */
  async #shiftOf(picture: Uint8Array, index: number, signal: AbortSignal): Promise<number | undefined> {
    const key = this.#shiftKey(index);
    const known = this.#shifts.get(key);
    if (known !== undefined) return known;
    const number = likely(this.#programme.main, this.#sound, index);
    if (number === undefined) return undefined;
    const sound = await this.#fetch(this.#sound, number, signal);
    const shift = this.#measured(picture, index, sound, number);
    if (shift === undefined) return undefined;
    this.#shifts.set(key, shift);
    for (const oldest of this.#shifts.keys()) {
      if (this.#shifts.size <= MAX_SHIFTS) break;
      this.#shifts.delete(oldest);
    }
    return shift;
  }

  /** The segments of sound that begin between the two times; waits for them where the manifest lags behind. */
  async #numbers(
    { start, end }: { readonly start: number; readonly end: number },
    signal: AbortSignal,
  ): Promise<number[]> {
    for (let reads = 0; ; reads++) {
      const { segments, firstNumber } = this.#sound.playlist;
      let at = this.#sound.startSeconds(firstNumber);
      const found: number[] = [];
      for (const { number, durationSeconds, isGap } of segments) {
        // What begins a frame before the picture does belongs to it.
        if (at >= start - 0.01 && at < end - 0.01 && !isGap) found.push(number);
        at += durationSeconds;
      }
      if (at >= end - 0.01 || !this.#sound.isLive || reads === MAX_LATE_READS) return found;
      await this.#sound.next(signal);
    }
  }
}

/** A segment of sound near one of the picture: of the same number, else as far from the end. */
function likely(main: HlsFeed, sound: HlsFeed, index: number): number | undefined {
  const { segments, firstNumber } = sound.playlist;
  const { discontinuity } = main.segment(index);
  const together = segments.filter((segment) => segment.discontinuity === discontinuity && !segment.isGap);
  const same = together.find(({ number }) => number === index);
  if (same || together.length === 0) return same?.number;
  const behind = main.playlist.firstNumber + main.playlist.segments.length - index;
  const wished = firstNumber + segments.length - behind;
  return together.reduce((a, b) => (Math.abs(b.number - wished) < Math.abs(a.number - wished) ? b : a))
    .number;
}
