import { concatBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { ManifestRendition, SegmentName } from "../engine.ts";
import type { SegmentBytes } from "../segment-cache.ts";
import type { LivePosition, LiveStream, ManifestPlace, SegmentSource } from "../segment-source.ts";
import { segmentNumber } from "../session-segments.ts";
import { WindowCursor } from "./live-cursor.ts";
import { listedSegments, openSegment, writeLiveManifest } from "./live-manifest.ts";
import type { LiveWindow } from "./live-window.ts";
import type { KeptSegment } from "./live-window-segment.ts";
import { nextNews } from "./window-news.ts";

/** What a live stream is played from. */
export interface LiveSourceParts {
  readonly window: LiveWindow;
  readonly infohash: Infohash;
  readonly clock: Clock;
}

/** Players may ask for what is so many segments ahead of the manifest (RFC 8216bis 6.2.5.2). */
const MAX_AHEAD = 2;
/** A source that is silent for so long no longer moves the window of those who watch behind the edge: the time of day does. */
const SILENT_MS = 5_000;

/**
 * A live stream as it is played, out of its window: as segments and parts of HLS whose numbers, borders and bytes the source has
 * decided, and as one transport stream for each player. It keeps nothing itself.
 */
export class LiveSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive = true;
  readonly live: LiveStream;
  readonly #window: LiveWindow;
  readonly #infohash: Infohash;
  readonly #clock: Clock;

  constructor({ window, infohash, clock }: LiveSourceParts) {
    this.#window = window;
    this.#infohash = infohash;
    this.#clock = clock;
    this.live = {
      cursor: (shiftMs) => new WindowCursor(window, shiftMs),
      part: (index, part, signal) => this.#part(index, part, signal),
    };
  }

  get name(): string {
    const { generation } = this.#window;
    return `${this.#infohash}/live${generation > 0 ? `.${generation}` : ""}`;
  }

  async manifest(place: ManifestPlace, _: ManifestRendition, signal: AbortSignal): Promise<string> {
    const { shiftMs = 0, reload } = place;
    const window = this.#window;
    const isAtEdge = shiftMs === 0;
    const listed = await this.#until(() => {
      const list = isAtEdge
        ? listedSegments(window.segments, Number.POSITIVE_INFINITY)
        : this.#shifted(shiftMs);
      const newest = list.at(-1)?.facts.number;
      if (newest === undefined || (isAtEdge && reload && !this.#has(reload, newest))) return undefined;
      return list;
    }, signal);
    const isEnded = window.hasEnded && listed.at(-1) === this.#newest;
    return writeLiveManifest(window, listed, place, { isAtEdge, isEnded });
  }

  /** The newest whole segment, waited for. */
  async first(signal: AbortSignal): Promise<number> {
    const newest = await this.#until(() => this.#newest, signal);
    return newest.facts.number;
  }

  async reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    const window = this.#window;
    const found = await this.#until(() => {
      const next = window.segments.find(({ isListable, facts }) => isListable && facts.number >= index);
      if (next) return next;
      // Far beyond the end: the numbers have begun anew.
      if (this.#newest && index > this.#newest.facts.number + MAX_AHEAD) return this.#newest;
      return window.hasEnded ? "over" : undefined;
    }, signal);
    return found === "over" ? undefined : found.facts.number;
  }

  async find(kind: SegmentName["kind"], number: number, signal: AbortSignal): Promise<number> {
    if (kind !== "ts")
      throw new SluiceError("no_such_segment", `the segments of this stream are no .${kind}`);
    const last = await this.#until(() => this.#window.segments.at(-1), signal);
    const found = this.#window.segments.findLast(
      ({ facts, isGone, isListed }) => isListed && !isGone && segmentNumber(0, facts.number) === number,
    );
    if (found) return found.facts.number;
    if (segmentNumber(0, last.facts.number + 1) === number) return last.facts.number + 1;
    throw noSuchSegment();
  }

  async make(
    _: SegmentName["kind"],
    index: number,
    _track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const segment = await this.#until(() => {
      const found = this.#numbered(index);
      return found?.isClosed ? found : undefined;
    }, signal);
    if (!segment.isListable) throw noSuchSegment();
    return this.#read(segment, 0, segment.mediaBytes);
  }

  livePosition(): LivePosition | undefined {
    const { segments, edgeMs, pieceMs, heardAt } = this.#window;
    const oldest = segments.find(({ isGone }) => !isGone);
    if (!oldest || edgeMs === undefined) return undefined;
    return {
      firstAt: Math.floor(oldest.facts.startMs / 1000) as UnixSeconds,
      lastAt: Math.floor(edgeMs / 1000) as UnixSeconds,
      segments: segments.filter(({ isGone }) => !isGone).length,
      pieceMs,
      heardAt,
    };
  }

  /** The newest segment that can be listed. */
  get #newest(): KeptSegment | undefined {
    return this.#window.segments.findLast(({ isListable }) => isListable);
  }

  /** What is listed for who watches so far behind the edge: it slides with the stream, and with time where that is silent. */
  #shifted(shiftMs: number): readonly KeptSegment[] {
    const { segments, heardAt, edgeMs = 0 } = this.#window;
    const silentMs = this.#clock.now() - heardAt;
    const untilMs = edgeMs + (silentMs > SILENT_MS ? silentMs : 0) - shiftMs;
    const listed = listedSegments(segments, untilMs);
    return listed.length > 0 ? listed : segments.filter(({ isListable }) => isListable).slice(0, 1);
  }

  /** Whether a manifest whose last segment is `newest` has what its asker waits for. Throws `bad_parameter` where that is
   * too far ahead. */
  #has({ segment, part }: NonNullable<ManifestPlace["reload"]>, newest: number): boolean {
    if (segment > newest + MAX_AHEAD)
      throw new SluiceError(
        "bad_parameter",
        `_HLS_msn is ${segment}, and the newest segment is ${newest}: expected no more than ${newest + MAX_AHEAD}`,
      );
    if (segment <= newest || this.#window.hasEnded) return true;
    const open = openSegment(this.#window, newest);
    return open?.facts.number === segment && part !== undefined && open.parts.length > part;
  }

  async #part(index: number, part: number, signal: AbortSignal): Promise<SegmentBytes> {
    const segment = await this.#until(() => {
      const found = this.#numbered(index);
      if (found && part > found.parts.length) throw noSuchSegment();
      if (found && part === found.parts.length && found.isCutting) return undefined;
      return found;
    }, signal);
    const told = segment.parts[part];
    if (!told) throw noSuchSegment();
    return this.#read(segment, told.start, told.end);
  }

  /** The segment of this number; undefined where it is the next to come, throws where it will not come. */
  #numbered(number: number): KeptSegment | undefined {
    const { segments, hasEnded } = this.#window;
    const found = segments.findLast(
      ({ facts, isListed, isGone }) => isListed && !isGone && facts.number === number,
    );
    const last = segments.at(-1);
    if (found || (last && last.facts.number + 1 === number && !hasEnded)) return found;
    throw noSuchSegment();
  }

  async #read(segment: KeptSegment, start: number, end: number): Promise<SegmentBytes> {
    const read: Uint8Array[] = [];
    for (let at = start; at < end; at += read.at(-1)!.length)
      read.push(await this.#window.read(segment, at, end - at));
    return concatBytes(read);
  }

  /** What `look` finds, asked again with each change of the window. */
  async #until<T>(look: () => T | undefined, signal: AbortSignal): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await nextNews(this.#window, signal).news;
    }
  }
}

function noSuchSegment(): SluiceError {
  return new SluiceError("no_such_segment", "the segment has gone by, or is not there yet");
}
