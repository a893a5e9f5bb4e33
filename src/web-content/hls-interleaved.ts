import { SluiceError } from "../base/errors.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { trackLanguage } from "../media/language.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import { firstTicks, interleaveTs } from "../remux/ts-interleave.ts";
import type {
  LivePosition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
  VariantFacts,
} from "../transfer/segment-source.ts";
import type { HlsFeed } from "./hls-feed.ts";
import type { HlsProgramme } from "./hls-programme.ts";

/** Limit of remembered time offsets, one per run of segments without discontinuity. */
const MAX_OFFSETS = 16;
/** Reloads of a late audio manifest per segment; after that the video continues without audio. */
const MAX_LATE_RELOADS = 4;

/**
 * HLS with a separate audio playlist as one transport stream: each video segment is combined with the audio segments that
 * start in it. Sequence numbers of the two playlists need not match (RFC 8216 6.2.4), so segments are matched by time. The
 * timestamps in the first segments fetched give the offset between the playlists.
 */
export class InterleavedHls implements SegmentSource {
  readonly container = "ts";
  readonly #programme: HlsProgramme;
  readonly #audio: HlsFeed;
  readonly #track: number;
  readonly #language: string;
  /** Seconds to add to audio time to get video time, by run of segments. */
  readonly #offsets = new Map<string, number>();

  /** Throws `unsupported_container` unless both playlists have MPEG-TS or packed audio. */
  constructor(programme: HlsProgramme, audio: HlsFeed, track: number, language: string | undefined) {
    if (programme.main.container !== "ts" || audio.container !== "ts") {
      const what = "this stream has separate video and audio in fragmented MP4; it can be played as HLS only";
      throw new SluiceError("unsupported_container", what);
    }
    this.#programme = programme;
    this.#audio = audio;
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
    return Promise.reject(new SluiceError("unsupported_container", "a transport stream has no manifest"));
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
    const video = await this.#fetch(main, index, signal);
    await this.#audio.refresh(signal);
    const offset = await this.#offsetOf(video, index, signal);
    if (offset === undefined) return video;
    const start = main.startSeconds(index) - offset;
    const isFirst = index === main.playlist.firstNumber && !this.isLive;
    const isLast = !this.isLive && index === main.playlist.segments.at(-1)?.number;
    const bounds = {
      start: isFirst ? Number.NEGATIVE_INFINITY : start,
      end: isLast ? Number.POSITIVE_INFINITY : main.startSeconds(index + 1) - offset,
    };
    const numbers = await this.#audioNumbers(bounds, signal);
    const audio: Uint8Array[] = [];
    for (const number of numbers) audio.push(await this.#fetch(this.#audio, number, signal));
    if (numbers.length > 0 && !isFirst) this.#verifyOffset(video, index, audio[0]!, numbers[0]!);
    return interleaveTs(video, audio, this.#language);
  }

  livePosition(): LivePosition | undefined {
    return this.#programme.main.livePosition();
  }

  #fetch(feed: HlsFeed, number: number, signal: AbortSignal): Promise<SegmentBytes> {
    const { fetcher } = this.#programme;
    return fetcher.segment(feed.segment(number), "ts", feed.location, signal, feed.startSeconds(number));
  }

  /** Rounded durations add up over days: measure the offset again once the error exceeds half a segment. */
  #verifyOffset(video: Uint8Array, index: number, audio: Uint8Array, number: number): void {
    const key = this.#offsetKey(index);
    const offset = this.#offsets.get(key);
    const measured = this.#measureOffset(video, index, audio, number);
    if (offset === undefined || measured === undefined) return;
    if (Math.abs(measured - offset) > this.#audio.segment(number).durationSeconds / 2)
      this.#offsets.delete(key);
  }

  #measureOffset(video: Uint8Array, index: number, audio: Uint8Array, number: number): number | undefined {
    const [videoTicks, audioTicks] = [firstTicks(video), firstTicks(audio)];
    if (videoTicks === undefined || audioTicks === undefined) return undefined;
    const differenceSeconds = deltaTicks(audioTicks, videoTicks) / TICKS_PER_SECOND;
    return this.#programme.main.startSeconds(index) + differenceSeconds - this.#audio.startSeconds(number);
  }

  #offsetKey(index: number): string {
    const { main } = this.#programme;
    return `${main.epoch} ${this.#audio.epoch} ${main.segment(index).discontinuity}`;
  }

  /** Returns the offset for a video segment, measured by the timestamps of one segment of each playlist if unknown. */
  async #offsetOf(video: Uint8Array, index: number, signal: AbortSignal): Promise<number | undefined> {
    const key = this.#offsetKey(index);
    const known = this.#offsets.get(key);
    if (known !== undefined) return known;
    const number = nearbyAudio(this.#programme.main, this.#audio, index);
    if (number === undefined) return undefined;
    const audio = await this.#fetch(this.#audio, number, signal);
    const offset = this.#measureOffset(video, index, audio, number);
    if (offset === undefined) return undefined;
    this.#offsets.set(key, offset);
    trimOldest(this.#offsets, MAX_OFFSETS);
    return offset;
  }

  /** Returns the audio segments that start in `[start, end)` seconds. Waits for a late audio manifest. */
  async #audioNumbers(
    { start, end }: { readonly start: number; readonly end: number },
    signal: AbortSignal,
  ): Promise<number[]> {
    for (let reloads = 0; ; reloads++) {
      const { segments, firstNumber } = this.#audio.playlist;
      let at = this.#audio.startSeconds(firstNumber);
      const found: number[] = [];
      for (const { number, durationSeconds, isGap } of segments) {
        // Audio that starts up to 10 ms before the video segment belongs to it.
        if (at >= start - 0.01 && at < end - 0.01 && !isGap) found.push(number);
        at += durationSeconds;
      }
      if (at >= end - 0.01 || !this.#audio.isLive || reloads === MAX_LATE_RELOADS) return found;
      await this.#audio.next(signal);
    }
  }
}

/** Returns an audio segment near a video segment: with the same number, else at the same distance from the end. */
function nearbyAudio(main: HlsFeed, audio: HlsFeed, index: number): number | undefined {
  const { segments, firstNumber } = audio.playlist;
  const { discontinuity } = main.segment(index);
  const candidates = segments.filter((segment) => segment.discontinuity === discontinuity && !segment.isGap);
  const same = candidates.find(({ number }) => number === index);
  if (same || candidates.length === 0) return same?.number;
  const behind = main.playlist.firstNumber + main.playlist.segments.length - index;
  const expected = firstNumber + segments.length - behind;
  return candidates.reduce((a, b) => (Math.abs(b.number - expected) < Math.abs(a.number - expected) ? b : a))
    .number;
}
