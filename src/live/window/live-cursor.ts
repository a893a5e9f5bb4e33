import { SluiceError } from "../../base/errors.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { LiveCursor } from "../../transfer/segment-source.ts";
import type { LiveWindow, WindowPlace } from "./live-window.ts";
import type { Cut, KeptSegment } from "./live-window-segment.ts";

/** Limit of a chunk for a player: whole packets, at most 128 KiB. */
const CHUNK_BYTES = 188 * 697;
/** A player starts at least this far behind the live edge if possible, so that it has data at once and its delay stays
 * constant. */
const START_BEHIND_MS = 600;

/** One player's position in the window, read as one transport stream. It holds no media and works only on request, so
 * stalled players cost nothing. New pieces are available as soon as they are complete. */
export class WindowCursor implements LiveCursor {
  readonly #window: LiveWindow;
  readonly #backlogMs: number;
  /** Where to start, in UNIX ms; undefined for the live edge. */
  #targetMs: number | undefined;
  #place: WindowPlace | undefined;
  #stopWaiting: () => void = () => {};

  /** See {@link LiveStream.cursor}. */
  constructor(window: LiveWindow, shiftMs: number, backlogMs = 0) {
    this.#window = window;
    this.#backlogMs = backlogMs;
    const { edgeMs } = window;
    if (shiftMs > 0 && edgeMs !== undefined) this.#targetMs = edgeMs - shiftMs;
  }

  get position(): UnixSeconds | undefined {
    const { segment, at } = this.#place ?? this.#begin() ?? {};
    const timeMs = segment ? segment.timeAt(at!) : this.#window.edgeMs;
    return timeMs === undefined ? undefined : (Math.floor(timeMs / 1000) as UnixSeconds);
  }

  seek(at: UnixSeconds | undefined): void {
    this.#targetMs = at === undefined ? undefined : 1000 * at;
    this.#place = undefined;
    this.#stopWaiting();
  }

  async next(signal: AbortSignal): Promise<Uint8Array | undefined> {
    for (;;) {
      signal.throwIfAborted();
      this.#place ??= this.#begin();
      const place = this.#place && this.#nextPlace(this.#place);
      if (place) {
        const chunk = await this.#read(place, signal);
        if (chunk) return chunk;
        continue;
      }
      if (this.#window.hasEnded && this.#window.segments.length > 0) return undefined;
      const { changed, stop } = this.#window.nextChange(signal);
      this.#stopWaiting = stop;
      await changed;
    }
  }

  /** Reads the bytes at `place` and moves the cursor behind them; undefined if they are gone, or the cursor has moved
   * meanwhile. */
  async #read(place: WindowPlace, signal: AbortSignal): Promise<Uint8Array | undefined> {
    this.#place = place;
    try {
      const chunk = await this.#window.read(place.segment, place.at, CHUNK_BYTES);
      signal.throwIfAborted();
      // The player has seeked meanwhile.
      if (this.#place !== place) return undefined;
      this.#place = { segment: place.segment, at: place.at + chunk.length };
      return chunk;
    } catch (thrown) {
      if (!(thrown instanceof SluiceError) || thrown.code !== "no_such_segment") throw thrown;
      return undefined;
    }
  }

  /** Returns the next position with bytes, at `place` or after it; undefined if none have arrived yet. */
  #nextPlace({ segment, at }: WindowPlace): WindowPlace | undefined {
    let current = segment;
    if (!current.isGone) {
      if (at < current.bytes) return { segment: current, at };
      if (!current.isClosed) return undefined;
    }
    // After a segment that was dropped, reading can only resume at a cut: at the oldest one.
    let hasGap = current.isGone && (!current.isClosed || at < current.bytes);
    for (let next = this.#window.after(current); next; next = this.#window.after(current)) {
      hasGap ||= next.facts.serial !== current.facts.serial + 1;
      const [cut] = next.cuts;
      if (!hasGap && next.bytes > 0) return { segment: next, at: 0 };
      if (hasGap && cut) return { segment: next, at: cut.at };
      current = next;
    }
    return undefined;
  }

  /** Returns the start position: the last cut at or before the wanted time, or the oldest one. */
  #begin(): WindowPlace | undefined {
    const { edgeMs, edgeStart } = this.#window;
    if (edgeMs === undefined) return undefined;
    if (this.#targetMs !== undefined)
      return this.#cutBefore(Math.min(this.#targetMs, edgeMs - START_BEHIND_MS));
    if (edgeStart === undefined) return undefined;
    return this.#backlogStart(edgeMs, edgeStart) ?? this.#cutBefore(edgeMs - START_BEHIND_MS, edgeStart);
  }

  /** Returns the oldest cut of the backlog that a player at the live edge starts with. */
  #backlogStart(edgeMs: number, from: WindowPlace): WindowPlace | undefined {
    const [fromMs, untilMs] = [edgeMs - this.#backlogMs, edgeMs - START_BEHIND_MS];
    for (const segment of this.#window.segments) {
      const cut = cutsFrom(segment, from).find(({ timeMs }) => timeMs >= fromMs && timeMs <= untilMs);
      if (cut) return { segment, at: cut.at };
    }
    return undefined;
  }

  #cutBefore(wantedMs: number, from?: WindowPlace): WindowPlace | undefined {
    const { segments } = this.#window;
    let earliest: WindowPlace | undefined;
    for (let index = segments.length - 1; index >= 0; index--) {
      const segment = segments[index]!;
      const cuts = cutsFrom(segment, from);
      const cut = cuts.findLast(({ timeMs }) => timeMs <= wantedMs);
      if (cut) return { segment, at: cut.at };
      if (cuts[0]) earliest = { segment, at: cuts[0].at };
    }
    return earliest;
  }
}

/** Returns the cuts of a segment at or after `from`; all of them if it is undefined, none if the segment is gone. */
function cutsFrom(segment: KeptSegment, from: WindowPlace | undefined): readonly Cut[] {
  if (segment.isGone) return [];
  const behind = from ? segment.facts.serial - from.segment.facts.serial : 1;
  if (behind < 0) return [];
  return behind > 0 ? segment.cuts : segment.cuts.filter(({ at }) => at >= from!.at);
}
