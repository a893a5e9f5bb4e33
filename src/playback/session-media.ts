import { linkedAbort, orAborted } from "../async/abort.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { ManifestPlace, SegmentBytes, SegmentName, SegmentSource } from "../transfer/segment-source.ts";
import { VARIANT_TRACKS } from "../transfer/segment-source.ts";
import type { SessionRendition } from "./contract.ts";
import type { MakeSegment, SegmentCache } from "./segment-cache.ts";

/**
 * CHOICE(held-reload): a manifest request that waits for a new live segment is answered with the present manifest after this
 * time. A source may be silent for long, and players give up on a request without a response.
 */
const HELD_RELOAD_MS = 8_000;

/** Dependencies of {@link SessionMedia}. */
export interface SessionMediaDependencies {
  readonly clock: Clock;
  /** The cache for films and for other content without live parts. */
  readonly segments: SegmentCache;
  /** The cache for live streams. */
  readonly liveSegments: SegmentCache;
  /** Fires when the session ends. */
  readonly ended: AbortSignal;
  readonly log: Log;
  /** Runs work that needs bytes of the transfer; fails if no bytes arrive for too long. */
  withTimeout<T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** The manifests and segments of one session. Segments are shared with other sessions. All methods reject with `SluiceError`. */
export class SessionMedia {
  readonly source: SegmentSource;
  readonly #dependencies: SessionMediaDependencies;
  /** The last requested segment of each track. */
  #lastIndexes = new Map<number, number>();
  /** See {@link ManifestPlace.cuts}. */
  #cuts: readonly number[] = [];

  constructor(source: SegmentSource, dependencies: SessionMediaDependencies) {
    this.source = source;
    this.#dependencies = dependencies;
  }

  /**
   * Waits until playback can start: for the first segment of a film, or its first batch as TS; for a manifest with a segment of a
   * live stream if `place` is given; otherwise for any bytes of it.
   */
  async first(place: ManifestPlace | undefined): Promise<void> {
    const { source } = this;
    const { withTimeout, ended } = this.#dependencies;
    const { body } = source;
    if (body) return withTimeout((stop) => body.ready(stop), ended);
    if (!source.live) return this.#firstSegment(place !== undefined);
    const cursor = source.live.cursor(0);
    if (place) await withTimeout((stop) => source.manifest(place, "main", stop), ended);
    else if (!(await withTimeout((stop) => cursor.next(stop), ended))) throw nothingToPlay();
  }

  /**
   * Returns the manifest. A live manifest is held until it contains the segment that `place.reload` names (RFC 8216bis
   * 6.2.5.2), for 8 s at most.
   */
  manifest(place: ManifestPlace, rendition: SessionRendition, signal: AbortSignal): Promise<string> {
    const own = this.#cuts.length > 0 ? { ...place, cuts: this.#cuts } : place;
    return this.#dependencies.withTimeout((stop) => this.#heldManifest(own, rendition, stop), signal);
  }

  /** Continues for the player of `previous`, which is another variant: its next segment begins a discontinuity. */
  follow(previous: SessionMedia): void {
    this.#lastIndexes = previous.#lastIndexes;
    this.#cuts = previous.#cuts;
    const tracks = [...this.#lastIndexes].filter(([track]) => track % VARIANT_TRACKS === 0);
    const last = tracks.length > 0 ? Math.max(...tracks.map(([, index]) => index)) : undefined;
    if (last !== undefined && this.#cuts.at(-1) !== last + 1) this.#cuts = [...this.#cuts, last + 1];
  }

  /** Returns the segment or part with this name; `number` is the number of the segment within the session. */
  async named(name: SegmentName, number: number, signal: AbortSignal): Promise<SegmentBytes> {
    const { kind, track, part } = name;
    const index = await this.source.find(kind, number, signal, track);
    if (part !== undefined) return this.#part(index, part, track, signal);
    if (kind !== "ts" && kind !== "m4s") return this.segment(kind, index, track, signal);
    const inOrder = index === (this.#lastIndexes.get(track) ?? -1) + 1;
    this.#lastIndexes.set(track, index);
    const bytes = await this.segment(kind, index, track, signal);
    if (inOrder && !this.source.isLive) this.#prepareNext(kind, index, track);
    return bytes;
  }

  /** Returns one segment. `signal` must fire when the session ends. */
  segment(
    kind: SegmentName["kind"],
    index: number,
    track: number,
    signal: AbortSignal,
  ): Promise<SegmentBytes> {
    const make: MakeSegment = (stop) => this.source.make(kind, index, track, stop);
    return this.#shared(`${track}/${index}.${kind}`, make, signal);
  }

  /** Returns the index to continue with; see {@link SegmentSource.reach}. */
  reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    return this.#dependencies.withTimeout((stop) => this.source.reach(index, stop), signal);
  }

  async #heldManifest(
    place: ManifestPlace,
    rendition: SessionRendition,
    signal: AbortSignal,
  ): Promise<string> {
    const { source } = this;
    const { clock } = this.#dependencies;
    const { reload, ...present } = place;
    if (!reload || !source.isLive) return this.#written(present, rendition, signal);
    const held = linkedAbort(signal);
    let isLate = false;
    const cancel = clock.at(after(clock.now(), HELD_RELOAD_MS), () => {
      isLate = true;
      held.abort(new SluiceError("cancelled", "the manifest was held for the longest permitted time"));
    });
    try {
      return await orAborted(this.#written(place, rendition, held.signal), held.signal);
    } catch (thrown) {
      if (!isLate || signal.aborted) throw thrown;
      return this.#written(present, rendition, signal);
    } finally {
      cancel();
      held.release();
    }
  }

  #written(place: ManifestPlace, rendition: SessionRendition, signal: AbortSignal): Promise<string> {
    const { source } = this;
    if (typeof rendition !== "object" || !("variant" in rendition))
      return source.manifest(place, rendition, signal);
    // A broadcast that has only one quality by now.
    if (!source.variantManifest) return source.manifest(place, "main", signal);
    return source.variantManifest(rendition.variant, place, signal);
  }

  async #firstSegment(isSegmented: boolean): Promise<void> {
    const { source } = this;
    const { withTimeout, ended } = this.#dependencies;
    const first = await withTimeout((stop) => source.first(stop), ended);
    const index = await this.reach(first, ended);
    if (index === undefined) throw nothingToPlay();
    if (source.play && !isSegmented) return this.#firstPieces(source.play.bind(source));
    if (source.container === "fmp4") await this.segment("mp4", index, 0, ended);
    await this.segment(source.container === "ts" ? "ts" : "m4s", index, 0, ended);
  }

  /** Remuxes the first batch of a continuous stream. */
  async #firstPieces(play: NonNullable<SegmentSource["play"]>): Promise<void> {
    const { withTimeout, ended } = this.#dependencies;
    const { pieces, remuxer } = await play({ signal: ended, wait: withTimeout });
    const reader = pieces.pipeThrough(remuxer).getReader();
    try {
      if ((await reader.read()).done) throw nothingToPlay();
    } finally {
      // The stream may have failed already.
      reader.cancel().catch(() => {});
    }
  }

  #part(index: number, part: number, track: number, signal: AbortSignal): Promise<SegmentBytes> {
    const { live } = this.source;
    if (!live) throw new SluiceError("no_such_segment", "this content has no parts of segments");
    const make: MakeSegment = (stop) => live.part(index, part, stop, track);
    return this.#shared(`${track}/${index}.p${part}`, make, signal);
  }

  /** Makes a segment once for all sessions that play the same source. */
  async #shared(name: string, make: MakeSegment, signal: AbortSignal): Promise<SegmentBytes> {
    const { withTimeout, segments, liveSegments } = this.#dependencies;
    const cache = this.source.live ? liveSegments : segments;
    return cache.get(`${this.source.name}/${name}`, (stop) => withTimeout(make, stop), signal);
  }

  /** Makes the next segment early for a player that requests segments in order; one at a time, and not after a jump. */
  #prepareNext(kind: "ts" | "m4s", index: number, track: number): void {
    const { ended, log } = this.#dependencies;
    const next = async () => {
      if ((await this.source.reach(index + 1, ended, track)) !== undefined)
        await this.segment(kind, index + 1, track, ended);
    };
    next().catch((thrown) => {
      // The request for this segment reports the error to the player.
      log.debug("cannot make the next segment early", { index: index + 1, reason: String(thrown) });
    });
  }
}

function nothingToPlay(): SluiceError {
  return new SluiceError("broken_media", "there is nothing to play");
}
