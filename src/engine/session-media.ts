import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { SegmentName } from "./engine.ts";
import type { MakeSegment, SegmentBytes, SegmentCache } from "./segment-cache.ts";
import type { LiveStream, ManifestPlace, SegmentSource } from "./segment-source.ts";
import { segmentKey } from "./session-segments.ts";

/** What the segments of a session are made with. */
export interface SessionMediaParts {
  /** For films, and for what has a window of its own. */
  readonly segments: SegmentCache;
  readonly liveSegments: SegmentCache;
  /** Fires when the session ends. */
  readonly ended: AbortSignal;
  readonly log: Log;
  /** Waits for what needs bytes, for as long as that makes sense. */
  patiently<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** What one session plays, its segments made once for all who ask. Everything rejects with `SluiceError`. */
export class SessionMedia {
  readonly source: SegmentSource;
  readonly #parts: SessionMediaParts;
  #lastIndex = -1;

  constructor(source: SegmentSource, parts: SessionMediaParts) {
    this.source = source;
    this.#parts = parts;
  }

  /** Resolves when a player that begins finds something: the first segment of a film, any bytes of a live stream, or
   * (given its place) a manifest of one that lists something. */
  async first(place: ManifestPlace | undefined): Promise<void> {
    const { source } = this;
    if (!source.live) return this.#firstSegment();
    const { patiently, ended } = this.#parts;
    const cursor = source.live.cursor(0);
    if (place) await patiently((stop) => source.manifest(place, "main", stop), ended);
    else if (!(await patiently((stop) => cursor.next(stop), ended))) throw nothingToPlay();
  }

  /** The segment of this name, or the part of one; `number` is that of the segment within the session. */
  async named(name: SegmentName, number: number, signal: AbortSignal): Promise<SegmentBytes> {
    const { kind, track, part } = name;
    const index = await this.source.find(kind, number, signal, track);
    if (part !== undefined) return this.#part(index, part, signal);
    const bytes = await this.segment(kind, index, track, signal);
    if (track === 0 && (kind === "ts" || kind === "m4s")) this.#prepareNext(kind, index);
    return bytes;
  }

  /** `signal` fires at the latest when the session ends. */
  segment(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const key = segmentKey(this.source.name, kind, index, track);
    return this.#shared(key, (end) => this.source.make(kind, index, track, end), signal);
  }

  /** See {@link SegmentSource.reach}. */
  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.#parts.patiently((stop) => this.source.reach(index, stop), signal);
  }

  async #firstSegment(): Promise<void> {
    const { source } = this;
    const { patiently, ended } = this.#parts;
    const first = await patiently((stop) => source.first(stop), ended);
    const index = await this.reach(first, ended);
    if (index === undefined) throw nothingToPlay();
    if (source.container === "fmp4") await this.segment("mp4", index, 0, ended);
    await this.segment(source.container === "ts" ? "ts" : "m4s", index, 0, ended);
  }

  #part(index: number, part: number, signal: AbortSignal): Promise<SegmentBytes> {
    const live: LiveStream | undefined = this.source.live;
    if (!live) throw new SluiceError("no_such_segment", "this content has no parts of segments");
    const key = segmentKey(this.source.name, `p${part}`, index, 0);
    return this.#shared(key, (end) => live.part(index, part, end), signal);
  }

  async #shared(key: string, make: MakeSegment, signal: AbortSignal): Promise<SegmentBytes> {
    const { patiently } = this.#parts;
    const segments = this.source.live ? this.#parts.liveSegments : this.#parts.segments;
    return segments.held(key) ?? segments.get(key, (stop) => patiently(make, stop), signal);
  }

  /** A player that takes segments in order finds the next one made. One at a time; a player that jumps gets none. */
  #prepareNext(kind: "ts" | "m4s", index: number): void {
    const inOrder = index === this.#lastIndex + 1;
    this.#lastIndex = index;
    if (!inOrder || this.source.isLive) return;
    const { ended, log } = this.#parts;
    const next = async () => {
      if ((await this.source.reach(index + 1, ended)) !== undefined)
        await this.segment(kind, index + 1, 0, ended);
    };
    next().catch((thrown) => {
      // Whoever asks for it hears the reason then.
      log.debug("a segment could not be made ahead", { index: index + 1, reason: String(thrown) });
    });
  }
}

function nothingToPlay(): SluiceError {
  return new SluiceError("broken_media", "there is nothing to play");
}
