import { orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import { after, type Instant, type UnixSeconds } from "../base/time.ts";
import { type HlsMedia, type HlsSegment, isLiveHls } from "../media/hls-media.ts";
import { type ManifestSegment, writeMediaManifest } from "../media/manifest.ts";
import type { LivePosition } from "../transfer/segment-source.ts";
import { segmentNumber } from "../transfer/segment-source.ts";
import { fetchManifest, type HlsLocation } from "./hls-fetch.ts";
import { checkKey } from "./hls-segment-fetcher.ts";
import type { WebClient } from "./web-client.ts";

/** Players start a live stream this many target durations before its end (RFC 8216 6.3.3). */
const START_BEHIND_TARGETS = 3;
/** Consecutive failed reloads after which the stream ends. */
const MAX_FAILURES = 6;
const MAX_RELOAD_MS = 15_000;

/**
 * A media manifest of another server: video with audio, one of the two, or subtitles. A live manifest is reloaded only on
 * demand, at most once per target duration.
 */
export class HlsFeed {
  readonly container: "ts" | "fmp4";
  readonly #client: WebClient;
  #playlist: HlsMedia;
  #location: HlsLocation;
  #loadedAt: UnixSeconds;
  #dueAt: Instant;
  #reloading: Promise<void> | undefined;
  #failures = 0;
  /** Total duration, in seconds, of the segments that left the manifest. */
  #removedSeconds = 0;
  #generation = 0;
  #jumps = 0;

  /** Throws `unsupported_content` if segments use an unsupported encryption. */
  constructor(client: WebClient, playlist: HlsMedia, location: HlsLocation) {
    for (const { key } of playlist.segments) checkKey(key);
    this.container = playlist.segments.some(({ map }) => map !== undefined) ? "fmp4" : "ts";
    this.#client = client;
    this.#playlist = playlist;
    this.#location = location;
    this.#loadedAt = client.clock.unixSeconds();
    this.#dueAt = after(client.clock.now(), 1000 * playlist.targetSeconds);
  }

  get playlist(): HlsMedia {
    return this.#playlist;
  }

  /** The base of its relative URIs. */
  get location(): HlsLocation {
    return this.#location;
  }

  /** Increases when sequence numbers restart: the same number then means another segment. */
  get generation(): number {
    return this.#generation;
  }

  /** Increases when `startSeconds` loses its reference: numbers restarted, or segments passed between two reloads. */
  get epoch(): number {
    return this.#generation + this.#jumps;
  }

  get isLive(): boolean {
    return isLiveHls(this.#playlist);
  }

  /**
   * Writes the manifest with other URIs. `uriOf` returns the URI of a segment, or of its initialization section (`mp4`). `cuts`: see
   * `ManifestPlace`.
   */
  manifest(
    uriOf: (number: number, ending: string) => string,
    ending: string,
    cuts: readonly number[] = [],
  ): string {
    const { segments, targetSeconds, isEnded, type, firstNumber } = this.#playlist;
    const [first] = segments;
    const addedBefore = (number: number) => cuts.filter((cut) => cut < number).length;
    let map: HlsSegment | undefined;
    return writeMediaManifest({
      kind: isEnded ? "vod" : type === "event" ? "event" : "live",
      firstNumber,
      firstDiscontinuity: first
        ? first.discontinuity - (first.isDiscontinuous ? 1 : 0) + addedBefore(first.number)
        : 0,
      targetSeconds,
      segments: segments.map((segment): ManifestSegment => {
        const { durationSeconds, number } = segment;
        const isDiscontinuous = segment.isDiscontinuous || cuts.includes(number);
        const uri = uriOf(number, ending);
        if (!segment.map) return { durationSeconds, isDiscontinuous, uri };
        if (!map || !isSameMap(map, segment)) map = segment;
        return { durationSeconds, isDiscontinuous, uri, mapUri: uriOf(map.number, "mp4") };
      }),
    });
  }

  /** Returns the sequence number at which a player starts. */
  first(): number {
    const { segments, firstNumber, targetSeconds } = this.#playlist;
    if (!this.isLive) return firstNumber;
    let seconds = 0;
    for (const { number, durationSeconds } of [...segments].reverse()) {
      seconds += durationSeconds;
      if (seconds >= START_BEHIND_TARGETS * targetSeconds) return number;
    }
    return firstNumber;
  }

  /** Waits for the first available segment from `number` on and returns its number; undefined after the last segment. */
  async reach(number: number, signal: AbortSignal): Promise<number | undefined> {
    for (;;) {
      const { segments, firstNumber } = this.#playlist;
      const next = segments.find((segment) => segment.number >= number && !segment.isGap);
      if (next) return next.number;
      if (!this.isLive) return undefined;
      // Far beyond the end: the sequence numbers have restarted.
      if (number > firstNumber + segments.length + 1) return this.first();
      await this.next(signal);
    }
  }

  /** Returns the number of the segment with these last six digits. Rejects with `no_such_segment`. */
  async find(lastDigits: number, signal: AbortSignal): Promise<number> {
    const search = () =>
      this.#playlist.segments.find(({ number }) => segmentNumber(0, number) === lastDigits);
    let found = search();
    if (!found) {
      // A player that read the manifest elsewhere may be ahead of this copy.
      await this.refresh(signal);
      found = search();
    }
    if (found) return found.number;
    throw noSuchSegment();
  }

  /** Returns the segment with this number. Throws `no_such_segment`. */
  segment(number: number): HlsSegment {
    const segment = this.#playlist.segments.find((each) => each.number === number);
    if (!segment) throw noSuchSegment();
    return segment;
  }

  /** Returns the start of a segment by the durations in the manifest, in seconds since the first segment ever seen. */
  startSeconds(number: number): number {
    let seconds = this.#removedSeconds;
    for (const segment of this.#playlist.segments) {
      if (segment.number >= number) break;
      seconds += segment.durationSeconds;
    }
    return seconds;
  }

  /** Returns the time range of the live window; undefined if the stream is not live. */
  livePosition(): LivePosition | undefined {
    if (!this.isLive) return undefined;
    const { segments } = this.#playlist;
    const seconds = segments.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0);
    const last = segments.at(-1);
    const endAt = last?.programTimeMs && last.programTimeMs / 1000 + last.durationSeconds;
    const lastAt = Math.floor(endAt ?? this.#loadedAt);
    return {
      firstAt: Math.floor(lastAt - seconds) as UnixSeconds,
      lastAt: lastAt as UnixSeconds,
      segments: segments.length,
    };
  }

  /** Waits until a reload of the live manifest is due, then reloads it. */
  async next(signal: AbortSignal): Promise<void> {
    await this.#client.pause(Math.max(0, this.#dueAt - this.#client.clock.now()), signal);
    await this.refresh(signal);
  }

  /** Reloads the manifest if it is live and a reload is due. Concurrent calls share one request. */
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
      const { playlist, location } = await fetchManifest(this.#client, this.#location, stopped.signal);
      if (playlist.kind === "master")
        throw new SluiceError(
          "broken_media",
          "the HLS manifest changed from a media manifest to a master manifest",
        );
      for (const { key } of playlist.segments) checkKey(key);
      this.#failures = 0;
      this.#removedSeconds = this.startSeconds(playlist.firstNumber);
      this.#playlist = playlist;
      this.#location = { ...this.#location, allowPrivate: location.allowPrivate };
      this.#loadedAt = clock.unixSeconds();
      if (endOf(playlist) < before.firstNumber) this.#generation++;
      if (playlist.firstNumber > endOf(before)) this.#jumps++;
    } catch (thrown) {
      // The previous manifest stays usable for a while, so a live stream survives a late response.
      if (stopped.signal.aborted || ++this.#failures >= MAX_FAILURES) throw thrown;
      log.debug("reloading an HLS manifest failed", { reason: String(thrown) });
    }
    // RFC 8216 6.3.4: wait a target duration, or half of it if the manifest did not change.
    const hasGrown = endOf(this.#playlist) !== endOf(before);
    const waitMs = 1000 * this.#playlist.targetSeconds * (hasGrown ? 1 : 0.5);
    this.#dueAt = after(clock.now(), Math.min(MAX_RELOAD_MS, Math.max(500, waitMs)));
  }
}

function noSuchSegment(): SluiceError {
  return new SluiceError("no_such_segment", "the segment has left the live window or never existed");
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
