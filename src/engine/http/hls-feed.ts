import { SluiceError } from "../../base/errors.ts";
import { after, type Instant, type UnixSeconds } from "../../base/time.ts";
import { type HlsMedia, type HlsSegment, isLiveHls } from "../../media/hls-media.ts";
import { type ManifestSegment, writeMediaManifest } from "../../media/manifest.ts";
import { orAborted } from "../segment-cache.ts";
import type { LivePosition } from "../segment-source.ts";
import { segmentNumber } from "../session-segments.ts";
import { fetchManifest, type HlsPlace } from "./hls-fetch.ts";
import { checkKey } from "./hls-parts.ts";
import type { WebClient } from "./web-client.ts";

/** Players begin a live stream so many target durations before its end (RFC 8216 6.3.3). */
const BEHIND_TARGETS = 3;
/** A manifest that cannot be had so often in a row ends the stream. */
const MAX_FAILURES = 6;
const MAX_RELOAD_MS = 15_000;

/**
 * One media manifest of another server: the picture with its sound, or one of the two, or subtitles. A live one is read
 * again when somebody wants to know, at most once in a target duration; nobody asks, nothing is fetched.
 */
export class HlsFeed {
  readonly container: "ts" | "fmp4";
  readonly #client: WebClient;
  #playlist: HlsMedia;
  #place: HlsPlace;
  #loadedAt: UnixSeconds;
  #dueAt: Instant;
  #reloading: Promise<void> | undefined;
  #failures = 0;
  /** Seconds of segments that have gone by before the first one. */
  #gone = 0;
  #generation = 0;
  #jumps = 0;

  /** Throws `unsupported_content` where segments are encrypted in a way that cannot be undone here. */
  constructor(client: WebClient, playlist: HlsMedia, place: HlsPlace) {
    for (const { key } of playlist.segments) checkKey(key);
    this.container = playlist.segments.some(({ map }) => map !== undefined) ? "fmp4" : "ts";
    this.#client = client;
    this.#playlist = playlist;
    this.#place = place;
    this.#loadedAt = client.clock.unixSeconds();
    this.#dueAt = after(client.clock.now(), 1000 * playlist.targetSeconds);
  }

  get playlist(): HlsMedia {
    return this.#playlist;
  }

  /** What its URIs are relative to. */
  get place(): HlsPlace {
    return this.#place;
  }

  /** Grows where the numbers begin anew: then the same number is another segment. */
  get generation(): number {
    return this.#generation;
  }

  /** Grows where `startSeconds` begins to count anew, or has missed something: nobody has read the manifest for long. */
  get epoch(): number {
    return this.#generation + this.#jumps;
  }

  get isLive(): boolean {
    return isLiveHls(this.#playlist);
  }

  /** The manifest with other URIs: `uriOf` makes that of a segment, or of the initialisation it comes with (`mp4`). */
  manifest(uriOf: (number: number, ending: string) => string, ending: string): string {
    const { segments, targetSeconds, isEnded, type, firstNumber } = this.#playlist;
    const [first] = segments;
    let map: HlsSegment | undefined;
    return writeMediaManifest({
      kind: isEnded ? "vod" : type === "event" ? "event" : "live",
      firstNumber,
      firstDiscontinuity: first ? first.discontinuity - (first.isDiscontinuous ? 1 : 0) : 0,
      targetSeconds,
      segments: segments.map((segment): ManifestSegment => {
        const { durationSeconds, isDiscontinuous, number } = segment;
        const uri = uriOf(number, ending);
        if (!segment.map) return { durationSeconds, isDiscontinuous, uri };
        if (!map || !isSameMap(map, segment)) map = segment;
        return { durationSeconds, isDiscontinuous, uri, mapUri: uriOf(map.number, "mp4") };
      }),
    });
  }

  /** The number at which a player begins. */
  first(): number {
    const { segments, firstNumber, targetSeconds } = this.#playlist;
    if (!this.isLive) return firstNumber;
    let seconds = 0;
    for (const { number, durationSeconds } of [...segments].reverse()) {
      seconds += durationSeconds;
      if (seconds >= BEHIND_TARGETS * targetSeconds) return number;
    }
    return firstNumber;
  }

  /** The number to go on with where `number` is next, waited for; undefined after the last. */
  async reach(number: number, signal: AbortSignal): Promise<number | undefined> {
    for (;;) {
      const { segments, firstNumber } = this.#playlist;
      const next = segments.find((segment) => segment.number >= number && !segment.isGap);
      if (next) return next.number;
      if (!this.isLive) return undefined;
      // Far beyond the end: the numbers have begun anew.
      if (number > firstNumber + segments.length + 1) return this.first();
      await this.next(signal);
    }
  }

  /** The segment whose number has these last six digits; rejects with `no_such_segment`. */
  async find(lastDigits: number, signal: AbortSignal): Promise<number> {
    const sought = () =>
      this.#playlist.segments.find(({ number }) => segmentNumber(0, number) === lastDigits);
    let found = sought();
    if (!found) {
      // A player that has paused asks for what has gone by; one that read the manifest elsewhere may be ahead of us.
      await this.refresh(signal);
      found = sought();
    }
    if (found) return found.number;
    throw goneBy();
  }

  /** The segment of this number; throws `no_such_segment`. */
  segment(number: number): HlsSegment {
    const segment = this.#playlist.segments.find((one) => one.number === number);
    if (!segment) throw goneBy();
    return segment;
  }

  /** When a segment begins, in seconds since the start of the first that was ever seen, as the manifest counts. */
  startSeconds(number: number): number {
    let seconds = this.#gone;
    for (const segment of this.#playlist.segments) {
      if (segment.number >= number) break;
      seconds += segment.durationSeconds;
    }
    return seconds;
  }

  /** Where the window lies now; undefined where there is none. */
  livePosition(): LivePosition | undefined {
    if (!this.isLive) return undefined;
    const { segments } = this.#playlist;
    const seconds = segments.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0);
    const last = segments.at(-1);
    const toldAt = last?.programTimeMs && last.programTimeMs / 1000 + last.durationSeconds;
    const lastAt = Math.floor(toldAt ?? this.#loadedAt);
    return {
      firstAt: Math.floor(lastAt - seconds) as UnixSeconds,
      lastAt: lastAt as UnixSeconds,
      segments: segments.length,
    };
  }

  /** Waits until a live manifest is due, and reads it again. */
  async next(signal: AbortSignal): Promise<void> {
    await this.#client.pause(Math.max(0, this.#dueAt - this.#client.clock.now()), signal);
    await this.refresh(signal);
  }

  /** Reads the manifest again where it is live and due; all who ask meanwhile wait for the same answer. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (!this.isLive || this.#client.clock.now() < this.#dueAt) return;
    this.#reloading ??= this.#reload().finally(() => {
      this.#reloading = undefined;
    });
    await orAborted(this.#reloading, signal);
  }

  async #reload(): Promise<void> {
    const before = this.#playlist;
    const { clock, log, stopped } = this.#client;
    try {
      const { playlist, place } = await fetchManifest(this.#client, this.#place, stopped.signal);
      if (playlist.kind === "master")
        throw new SluiceError("broken_media", "the HLS manifest has turned into a list of variants");
      for (const { key } of playlist.segments) checkKey(key);
      this.#failures = 0;
      this.#gone = this.startSeconds(playlist.firstNumber);
      this.#playlist = playlist;
      this.#place = { ...this.#place, allowPrivate: place.allowPrivate };
      this.#loadedAt = clock.unixSeconds();
      if (endOf(playlist) < before.firstNumber) this.#generation++;
      if (playlist.firstNumber > endOf(before)) this.#jumps++;
    } catch (thrown) {
      // What was told before still holds for a while; a live stream shall survive one answer that is late.
      if (stopped.signal.aborted || ++this.#failures >= MAX_FAILURES) throw thrown;
      log.debug("an HLS manifest could not be read again", { reason: String(thrown) });
    }
    // RFC 8216 6.3.4: a target duration, half of it where nothing was new.
    const hasGrown = endOf(this.#playlist) !== endOf(before);
    const waitMs = 1000 * this.#playlist.targetSeconds * (hasGrown ? 1 : 0.5);
    this.#dueAt = after(clock.now(), Math.min(MAX_RELOAD_MS, Math.max(500, waitMs)));
  }
}

function goneBy(): SluiceError {
  return new SluiceError("no_such_segment", "the segment has gone by, or never was");
}

function endOf({ firstNumber, segments }: HlsMedia): number {
  return firstNumber + segments.length;
}

function isSameMap(a: HlsSegment, b: HlsSegment): boolean {
  return (
    a.map?.uri === b.map?.uri &&
    a.map?.range?.start === b.map?.range?.start &&
    a.map?.range?.end === b.map?.range?.end
  );
}
