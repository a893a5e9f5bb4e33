import { SluiceError } from "../base/errors.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import { CursorReader, type CursorReaderParts } from "./cursor-reader.ts";
import type { LivePosition, LiveStream, SegmentSource } from "./segment-source.ts";

/** Where a session stands in the window of a live stream. */
export interface LiveStanding extends LivePosition {
  /** The time of what goes out next. */
  readonly position: UnixSeconds;
  /** How many pieces there are from it on; segments, of what comes in segments only. */
  readonly piecesAhead: number;
  readonly isAtEdge: boolean;
}

/**
 * CHOICE(live-edge): who is no further behind the newest piece than this watches live. A stream is joined at a keyframe, and
 * sources send one each ten seconds at worst.
 */
const EDGE_SECONDS = 10;

/** How one session watches a live stream: where its connections stand, and how far behind the edge those to come begin. */
export class SessionLive {
  /** In the order in which they were opened. */
  readonly #readers = new Set<CursorReader>();
  #shiftMs = 0;

  /** How far behind the edge the player watches; 0 for live. */
  get shiftMs(): number {
    return this.#shiftMs;
  }

  /** One more connection, that begins where the player watches. */
  open(stream: LiveStream, clock: Clock, wait: CursorReaderParts["wait"]): CursorReader {
    const cursor = stream.cursor(this.#shiftMs);
    const reader: CursorReader = new CursorReader({
      clock,
      cursor,
      wait,
      closed: () => this.#readers.delete(reader),
    });
    this.#readers.add(reader);
    return reader;
  }

  /**
   * Takes the player to a time: all its connections, what its manifests list, and connections to come. CHOICE(live-seek): a
   * time outside the window is the nearest in it; -1, and what is not there yet, is the edge. Throws `bad_parameter`
   * where there is no window to move in.
   */
  seek(to: UnixSeconds | -1, source: SegmentSource): void {
    if (!source.isLive) throw cannotSeek("this is not a live stream");
    if (!source.live) throw cannotSeek("of this stream nothing is kept to go back to");
    const window = source.livePosition?.();
    if (!window && to !== -1) throw cannotSeek("nothing of this stream is here yet");
    const isEdge = !window || to === -1 || to >= window.lastAt;
    const at = isEdge ? undefined : (Math.max(to, window.firstAt) as UnixSeconds);
    this.#shiftMs = at === undefined ? 0 : 1000 * (window!.lastAt - at);
    for (const reader of this.#readers) reader.seek(at);
  }

  /** Since when a player at the edge has had nothing new to ask for; undefined where it is further back. */
  stillSince(source: SegmentSource): Instant | undefined {
    return this.#shiftMs === 0 ? source.livePosition?.()?.heardAt : undefined;
  }

  /** Where the player is now; of several connections, the newest counts. */
  standing(source: SegmentSource): LiveStanding | undefined {
    const window = source.livePosition?.();
    if (!window) return undefined;
    const { firstAt, lastAt, pieceMs } = window;
    const shifted = (lastAt - this.#shiftMs / 1000) as UnixSeconds;
    const reading = [...this.#readers].at(-1)?.position ?? shifted;
    const position = Math.min(lastAt, Math.max(firstAt, reading)) as UnixSeconds;
    const behindSeconds = lastAt - position;
    return {
      ...window,
      position,
      piecesAhead: pieceMs === undefined ? window.segments : Math.round((1000 * behindSeconds) / pieceMs),
      // Who went back is sent some seconds ahead of what is shown.
      isAtEdge: Math.max(behindSeconds, this.#shiftMs / 1000) <= EDGE_SECONDS,
    };
  }
}

/** Why a `liveseek` cannot be. */
export function cannotSeek(why: string): SluiceError {
  return new SluiceError("bad_parameter", `liveseek: ${why}`);
}
