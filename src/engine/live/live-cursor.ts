import { SluiceError } from "../../base/errors.ts";
import type { UnixSeconds } from "../../base/time.ts";
import type { LiveCursor } from "../segment-source.ts";
import type { LiveWindow } from "./live-window.ts";
import type { KeptSegment } from "./live-window-segment.ts";
import { nextNews } from "./window-news.ts";

/** A chunk for a player: whole packets, and no more than 128 KiB. */
const CHUNK_BYTES = 188 * 697;
/** A player begins so far behind the edge, where it can: it has something to show at once, and the same delay afterwards. */
const START_BEHIND_MS = 600;

/** A place in the window. */
interface Place {
  readonly segment: KeptSegment;
  readonly at: number;
}

/**
 * One player's way through the window as one transport stream. It holds a place and nothing else, and does nothing unless it is asked, so
 * that any number of stalled players cost nothing. Whole pieces go out as soon as they are there.
 */
export class WindowCursor implements LiveCursor {
  readonly #window: LiveWindow;
  /** Where to begin, in UNIX ms; undefined for the edge. */
  #goalMs: number | undefined;
  #place: Place | undefined;
  #wake: () => void = () => {};

  /** Begins so far behind the edge. */
  constructor(window: LiveWindow, shiftMs: number) {
    this.#window = window;
    const { edgeMs } = window;
    if (shiftMs > 0 && edgeMs !== undefined) this.#goalMs = edgeMs - shiftMs;
  }

  get position(): UnixSeconds | undefined {
    const { segment, at } = this.#place ?? this.#begin() ?? {};
    const timeMs = segment ? segment.timeAt(at!) : this.#window.edgeMs;
    return timeMs === undefined ? undefined : (Math.floor(timeMs / 1000) as UnixSeconds);
  }

  seek(at: UnixSeconds | undefined): void {
    this.#goalMs = at === undefined ? undefined : 1000 * at;
    this.#place = undefined;
    this.#wake();
  }

  async next(signal: AbortSignal): Promise<Uint8Array | undefined> {
    for (;;) {
      signal.throwIfAborted();
      this.#place ??= this.#begin();
      const place = this.#place && this.#onwards(this.#place);
      if (place) {
        const chunk = await this.#read(place, signal);
        if (chunk) return chunk;
        continue;
      }
      if (this.#window.hasEnded && this.#window.segments.length > 0) return undefined;
      const { news, stop } = nextNews(this.#window, signal);
      this.#wake = stop;
      await news;
    }
  }

  /** The bytes at `place`, from which the cursor goes on; undefined where they are gone, or nobody wants them any more. */
  async #read(place: Place, signal: AbortSignal): Promise<Uint8Array | undefined> {
    this.#place = place;
    try {
      const chunk = await this.#window.read(place.segment, place.at, CHUNK_BYTES);
      signal.throwIfAborted();
      // The player has gone elsewhere meanwhile.
      if (this.#place !== place) return undefined;
      this.#place = { segment: place.segment, at: place.at + chunk.length };
      return chunk;
    } catch (thrown) {
      if (!(thrown instanceof SluiceError) || thrown.code !== "no_such_segment") throw thrown;
      return undefined;
    }
  }

  /** Where there are bytes to be read, at `place` or behind it; undefined where they are still to come. */
  #onwards({ segment, at }: Place): Place | undefined {
    let here = segment;
    if (!here.isGone) {
      if (at < here.bytes) return { segment: here, at };
      if (!here.isClosed) return undefined;
    }
    // What has gone by is not there to be read from its middle on: the oldest place to begin is next.
    let isTorn = here.isGone && (!here.isClosed || at < here.bytes);
    for (let next = this.#window.after(here); next; next = this.#window.after(here)) {
      isTorn ||= next.facts.serial !== here.facts.serial + 1;
      const [cut] = next.cuts;
      if (!isTorn && next.bytes > 0) return { segment: next, at: 0 };
      if (isTorn && cut) return { segment: next, at: cut.at };
      here = next;
    }
    return undefined;
  }

  /** The place to begin: the last one at or before the time that is wanted, or the oldest. */
  #begin(): Place | undefined {
    const { segments, edgeMs } = this.#window;
    if (edgeMs === undefined) return undefined;
    const wantedMs = Math.min(this.#goalMs ?? edgeMs, edgeMs - START_BEHIND_MS);
    let earliest: Place | undefined;
    for (let index = segments.length - 1; index >= 0; index--) {
      const segment = segments[index]!;
      if (segment.isGone) continue;
      const { cuts } = segment;
      const cut = cuts.findLast(({ timeMs }) => timeMs <= wantedMs);
      if (cut) return { segment, at: cut.at };
      if (cuts[0]) earliest = { segment, at: cuts[0].at };
    }
    return earliest;
  }
}
