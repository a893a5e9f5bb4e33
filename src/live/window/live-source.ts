import { SluiceError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { ListedSegment } from "../../transfer/piece-segments.ts";
import type {
  LivePosition,
  LiveStream,
  ManifestPlace,
  ManifestRendition,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../../transfer/segment-source.ts";
import { segmentNumber } from "../../transfer/segment-source.ts";
import { WindowCursor } from "./live-cursor.ts";
import { listedSegments, openSegment, writeLiveManifest } from "./live-manifest.ts";
import type { LiveWindow } from "./live-window.ts";
import { type KeptSegment, readRange } from "./live-window-segment.ts";

/** What a live stream is played from. */
export interface LiveSourceOptions {
  readonly window: LiveWindow;
  readonly infohash: Infohash;
  readonly clock: Clock;
  /** True if seconds of media arrive at once: manifests then have no parts, so that players keep a buffer of some segments. */
  readonly isBursty?: boolean;
  /** How much a manifest lists (default: one minute). */
  readonly listedMs?: number;
  /** Returns segments that can be loaded although they are older than the window: those right before the given one, oldest first. */
  earlier?(first: KeptSegment): readonly ListedSegment[];
}

/** Players may request a segment up to this far ahead of the manifest (RFC 8216bis 6.2.5.2). */
const MAX_AHEAD = 2;
/** If the source is silent for this long, the manifests of time-shifted players move with the clock instead. */
const SILENT_MS = 5_000;
/** The first manifest of a bursty stream lists this many segments: players would stall with one. */
const MIN_BURSTY_SEGMENTS = 2;

/** A live stream as its players read it from the window: as HLS segments and parts whose numbers, boundaries and bytes
 * the source has signed, and as one transport stream per player. It keeps no media itself. */
export class LiveSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive = true;
  readonly live: LiveStream;
  readonly #window: LiveWindow;
  readonly #infohash: Infohash;
  readonly #clock: Clock;
  readonly #isBursty: boolean;
  readonly #listedMs: number | undefined;
  readonly #earlier: NonNullable<LiveSourceOptions["earlier"]>;

  constructor({ window, infohash, clock, ...options }: LiveSourceOptions) {
    this.#window = window;
    this.#isBursty = options.isBursty ?? false;
    this.#listedMs = options.listedMs;
    this.#earlier = options.earlier ?? (() => []);
    this.#infohash = infohash;
    this.#clock = clock;
    this.live = {
      cursor: (shiftMs, backlogMs) => new WindowCursor(window, shiftMs, backlogMs),
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
    const minSegments = this.#isBursty && isAtEdge && !window.hasEnded ? MIN_BURSTY_SEGMENTS : 1;
    const listed = await this.#waitFor(() => {
      const list = isAtEdge
        ? listedSegments(window.segments, Number.POSITIVE_INFINITY, this.#listedMs)
        : this.#shifted(shiftMs);
      const newest = list.at(-1)?.facts.number;
      if (newest === undefined || list.length < minSegments) return undefined;
      if (isAtEdge && reload && !this.#contains(reload, newest)) return undefined;
      return list;
    }, signal);
    const isEnded = window.hasEnded && listed.at(-1) === this.#newest;
    return writeLiveManifest(window, listed, place, {
      isAtEdge: isAtEdge && !this.#isBursty,
      isEnded,
      earlier: isAtEdge ? this.#earlier(listed[0]!) : [],
    });
  }

  /** Waits for the newest complete segment and returns its number. */
  async first(signal: AbortSignal): Promise<number> {
    const newest = await this.#waitFor(() => this.#newest, signal);
    return newest.facts.number;
  }

  async reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    const window = this.#window;
    const found = await this.#waitFor(() => {
      const next = window.segments.find(({ isListable, facts }) => isListable && facts.number >= index);
      if (next) return next;
      // Far beyond the end: the source has restarted its segment numbers.
      if (this.#newest && index > this.#newest.facts.number + MAX_AHEAD) return this.#newest;
      return window.hasEnded ? "over" : undefined;
    }, signal);
    return found === "over" ? undefined : found.facts.number;
  }

  async find(kind: SegmentName["kind"], number: number, signal: AbortSignal): Promise<number> {
    if (kind !== "ts") throw new SluiceError("no_such_segment", `this stream has no .${kind} segments`);
    const last = await this.#waitFor(() => this.#window.segments.at(-1), signal);
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
    const segment = await this.#waitFor(() => {
      const found = this.#segmentAt(index);
      return found?.isClosed ? found : undefined;
    }, signal);
    if (!segment.isListable) throw noSuchSegment();
    return readRange(this.#window, segment, 0, segment.mediaBytes);
  }

  isWhole(number: number): boolean {
    const isNamed = ({ facts, isListable }: KeptSegment) =>
      isListable && segmentNumber(0, facts.number) === number;
    return this.#window.segments.findLast(isNamed)?.isWhole ?? false;
  }

  livePosition(): LivePosition | undefined {
    const { segments, edgeMs, pieceMs, lastPieceAt } = this.#window;
    const oldest = segments.find(({ isGone }) => !isGone);
    if (!oldest || edgeMs === undefined) return undefined;
    return {
      firstAt: Math.floor(oldest.facts.startMs / 1000) as UnixSeconds,
      lastAt: Math.floor(edgeMs / 1000) as UnixSeconds,
      segments: segments.filter(({ isGone }) => !isGone).length,
      pieceMs,
      heardAt: lastPieceAt,
    };
  }

  /** The newest segment that can be listed. */
  get #newest(): KeptSegment | undefined {
    return this.#window.segments.findLast(({ isListable }) => isListable);
  }

  /** Returns the list for a player `shiftMs` behind the edge. It moves with the stream, or with the clock if the
   * source is silent. */
  #shifted(shiftMs: number): readonly KeptSegment[] {
    const { segments, lastPieceAt, edgeMs = 0 } = this.#window;
    const silentMs = this.#clock.now() - lastPieceAt;
    const untilMs = edgeMs + (silentMs > SILENT_MS ? silentMs : 0) - shiftMs;
    const listed = listedSegments(segments, untilMs);
    return listed.length > 0 ? listed : segments.filter(({ isListable }) => isListable).slice(0, 1);
  }

  /** Whether the manifest that ends with `newest` contains the segment or part that the player waits for. Throws
   * `bad_parameter` if that is too far ahead. */
  #contains({ segment, part }: NonNullable<ManifestPlace["reload"]>, newest: number): boolean {
    if (segment > newest + MAX_AHEAD)
      throw new SluiceError(
        "bad_parameter",
        `_HLS_msn is ${segment}, but the newest segment is ${newest}: expected at most ${newest + MAX_AHEAD}`,
      );
    if (segment <= newest || this.#window.hasEnded) return true;
    const open = openSegment(this.#window, newest);
    return open?.facts.number === segment && part !== undefined && open.parts.length > part;
  }

  async #part(index: number, part: number, signal: AbortSignal): Promise<SegmentBytes> {
    const segment = await this.#waitFor(() => {
      const found = this.#segmentAt(index);
      if (found && part > found.parts.length) throw noSuchSegment();
      if (found && part === found.parts.length && found.isCutting) return undefined;
      return found;
    }, signal);
    const range = segment.parts[part];
    if (!range) throw noSuchSegment();
    return readRange(this.#window, segment, range.start, range.end);
  }

  /** Returns the segment with this number; undefined if it is the next one to come. Throws if it will not come. */
  #segmentAt(number: number): KeptSegment | undefined {
    const { segments, hasEnded } = this.#window;
    const found = segments.findLast(
      ({ facts, isListed, isGone }) => isListed && !isGone && facts.number === number,
    );
    const last = segments.at(-1);
    if (found || (last && last.facts.number + 1 === number && !hasEnded)) return found;
    throw noSuchSegment();
  }

  /** Waits until `look` returns a value; it is called again after each change of the window. */
  async #waitFor<T>(look: () => T | undefined, signal: AbortSignal): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      await this.#window.nextChange(signal).changed;
    }
  }
}

function noSuchSegment(): SluiceError {
  return new SluiceError("no_such_segment", "the segment has left the live window, or does not exist yet");
}
