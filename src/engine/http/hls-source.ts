import { SluiceError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import { after, type Instant, type UnixSeconds } from "../../base/time.ts";
import type { HlsMedia, HlsSegment } from "../../media/hls-media.ts";
import { writeMediaManifest } from "../../media/manifest.ts";
import type { SegmentName } from "../engine.ts";
import { orAborted, type SegmentBytes } from "../segment-cache.ts";
import type { LivePosition, ManifestPlace, SegmentSource } from "../segment-source.ts";
import { segmentNumber } from "../session-segments.ts";
import { fetchManifest, type HlsPlace, placeOf } from "./hls-fetch.ts";
import { checkKey, HlsParts } from "./hls-parts.ts";
import { chooseVariant } from "./hls-variant.ts";
import type { WebClient } from "./web-client.ts";
import type { WebContent } from "./web-content.ts";

/** Players begin a live stream so many target durations before its end (RFC 8216 6.3.3). */
const BEHIND_TARGETS = 3;
/** A manifest that cannot be had so often in a row ends the stream. */
const MAX_FAILURES = 6;
const MAX_RELOAD_MS = 15_000;

/** Opens HLS of another server. Rejects with `SluiceError` where it is none that can be passed on. */
export async function openHls(
  client: WebClient,
  content: WebContent,
  infohash: Infohash,
): Promise<SegmentSource> {
  const { signal } = client.stopped;
  let fetched = await fetchManifest(client, content, signal);
  if (fetched.playlist.kind === "master") {
    const { uri } = chooseVariant(fetched.playlist);
    fetched = await fetchManifest(client, placeOf(uri, fetched.place), signal);
  }
  const { playlist, place } = fetched;
  if (playlist.kind === "master")
    throw new SluiceError("broken_media", "this HLS manifest leads to another list of variants");
  for (const { key } of playlist.segments) checkKey(key);
  return new HlsSource(client, playlist, place, infohash);
}

/**
 * HLS of another server under our own addresses: the same segments with the same numbers, fetched once for all who play
 * it. A live manifest is read again when somebody wants to know, at most once in a target duration.
 */
class HlsSource implements SegmentSource {
  readonly container: "ts" | "fmp4";
  readonly #client: WebClient;
  readonly #infohash: Infohash;
  readonly #parts: HlsParts;
  #playlist: HlsMedia;
  #place: HlsPlace;
  #loadedAt: UnixSeconds;
  #dueAt: Instant;
  #reloading: Promise<void> | undefined;
  #failures = 0;
  /** Grows where the numbers begin anew: then the same number is another segment. */
  #generation = 0;

  constructor(client: WebClient, playlist: HlsMedia, place: HlsPlace, infohash: Infohash) {
    this.container = playlist.segments.some(({ map }) => map !== undefined) ? "fmp4" : "ts";
    this.#client = client;
    this.#infohash = infohash;
    this.#parts = new HlsParts(client);
    this.#playlist = playlist;
    this.#place = place;
    this.#loadedAt = client.clock.unixSeconds();
    this.#dueAt = after(client.clock.now(), 1000 * playlist.targetSeconds);
  }

  get name(): string {
    return `${this.#infohash}/hls ${this.#generation}`;
  }

  get isLive(): boolean {
    return !this.#playlist.isEnded && this.#playlist.type !== "vod";
  }

  async manifest(
    { base, session }: ManifestPlace,
    _rendition: unknown,
    signal: AbortSignal,
  ): Promise<string> {
    await this.#refresh(signal);
    const { segments, targetSeconds, isEnded, type } = this.#playlist;
    const uriOf = ({ number }: HlsSegment, ending: string) =>
      `${base}/ace/c/${session.infohash}/${segmentNumber(session.ordinal, number)}.${ending}`;
    const [first] = segments;
    let map: HlsSegment | undefined;
    return writeMediaManifest({
      kind: isEnded ? "vod" : type === "event" ? "event" : "live",
      firstNumber: this.#playlist.firstNumber,
      firstDiscontinuity: first ? first.discontinuity - (first.isDiscontinuous ? 1 : 0) : 0,
      targetSeconds,
      segments: segments.map((segment) => {
        const { durationSeconds, isDiscontinuous } = segment;
        if (this.container === "ts") return { durationSeconds, isDiscontinuous, uri: uriOf(segment, "ts") };
        if (!map || !isSameMap(map, segment)) map = segment;
        const uri = uriOf(segment, "m4s");
        return { durationSeconds, isDiscontinuous, uri, mapUri: uriOf(map, "mp4") };
      }),
    });
  }

  async first(): Promise<number> {
    const { segments, firstNumber, targetSeconds } = this.#playlist;
    if (!this.isLive) return firstNumber;
    let seconds = 0;
    for (const { number, durationSeconds } of [...segments].reverse()) {
      seconds += durationSeconds;
      if (seconds >= BEHIND_TARGETS * targetSeconds) return number;
    }
    return firstNumber;
  }

  async reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    for (;;) {
      const { segments, isEnded, type } = this.#playlist;
      const next = segments.find(({ number, isGap }) => number >= index && !isGap);
      if (next) return next.number;
      if (isEnded || type === "vod") return undefined;
      // Far beyond the end: the numbers have begun anew.
      if (index > this.#playlist.firstNumber + segments.length + 1) return this.first();
      await this.#client.pause(Math.max(0, this.#dueAt - this.#client.clock.now()), signal);
      await this.#refresh(signal);
    }
  }

  async find(kind: SegmentName["kind"], number: number, signal: AbortSignal): Promise<number> {
    const fits = kind === "ts" ? this.container === "ts" : kind !== "vtt" && this.container === "fmp4";
    const sought = () =>
      this.#playlist.segments.find((segment) => segmentNumber(0, segment.number) === number);
    let found = sought();
    if (!found) {
      // A player that has paused asks for what has gone by; one that read the manifest elsewhere may be ahead of us.
      await this.#refresh(signal);
      found = sought();
    }
    if (fits && found) return found.number;
    throw new SluiceError("no_such_segment", "the segment has gone by, or never was");
  }

  async make(
    kind: SegmentName["kind"],
    index: number,
    _track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const segment = this.#playlist.segments.find(({ number }) => number === index);
    if (!segment) throw new SluiceError("no_such_segment", "the segment has gone by, or never was");
    if (kind === "mp4") return this.#parts.map(segment, this.#place, signal);
    return this.#parts.segment(segment, this.container, this.#place, signal);
  }

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

  /** Reads the manifest again where it is live and due; all who ask meanwhile wait for the same answer. */
  async #refresh(signal: AbortSignal): Promise<void> {
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
      this.#playlist = playlist;
      this.#place = { ...this.#place, allowPrivate: place.allowPrivate };
      this.#loadedAt = clock.unixSeconds();
      if (endOf(playlist) < before.firstNumber) this.#generation++;
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
