import { SluiceError } from "../base/errors.ts";
import type { Instant, UnixSeconds } from "../base/time.ts";
import type { LivePosition, LiveStream, SegmentSource } from "../transfer/segment-source.ts";
import { CursorReader, type CursorReaderDependencies } from "./cursor-reader.ts";

/** The position of a session in the window of a live stream. */
export interface PlayerPosition extends LivePosition {
  /** The time of the media that is sent next. */
  readonly position: UnixSeconds;
  /** Number of pieces after it; number of segments if the source has no pieces. */
  readonly piecesAhead: number;
  readonly isAtEdge: boolean;
}

/**
 * CHOICE(live-edge): a player watches live if it is no further behind the newest piece than this. A player joins a stream at
 * a keyframe, and sources send one every ten seconds at worst.
 */
const EDGE_SECONDS = 10;

/**
 * CHOICE(start-backlog): an MPEG-TS player starts up to 7 s behind the newest data, if that much is kept, and receives this part
 * at once. Players detect the codecs from the first 5 s (the default of ffmpeg), which take 5 s if they start at the edge.
 */
const START_BACKLOG_MS = 7_000;

/** How one session watches a live stream: its open connections, and how far behind the edge new ones start. */
export class SessionLive {
  /** In the order of opening. */
  readonly #readers = new Set<CursorReader>();
  readonly #backlogMs: number;
  #shiftMs = 0;

  constructor({ isLowLatency = false }: { readonly isLowLatency?: boolean | undefined }) {
    this.#backlogMs = isLowLatency ? 0 : START_BACKLOG_MS;
  }

  /** How far the player is behind the edge; 0 for live. */
  get shiftMs(): number {
    return this.#shiftMs;
  }

  /** Opens the stream for a connection, at the position of the player. */
  open(
    stream: LiveStream,
    reads: Pick<CursorReaderDependencies, "clock" | "pulled" | "wait">,
  ): ReadableStream<Uint8Array> {
    const cursor = stream.cursor(this.#shiftMs, this.#backlogMs);
    const reader: CursorReader = new CursorReader({
      ...reads,
      cursor,
      closed: () => this.#readers.delete(reader),
    });
    this.#readers.add(reader);
    return reader.pieces;
  }

  /**
   * Moves the player to a time: all its connections, its manifests, and later connections. CHOICE(live-seek): a time before
   * the window means its start; -1 and a time after the window mean the edge. Throws `bad_parameter` if there is no window.
   */
  seek(to: UnixSeconds | -1, source: SegmentSource): void {
    if (!source.isLive) throw cannotSeek("this is not a live stream");
    if (!source.live) throw cannotSeek("nothing of this stream is kept");
    const window = source.livePosition?.();
    if (!window && to !== -1) throw cannotSeek("no data of this stream has arrived yet");
    const isEdge = !window || to === -1 || to >= window.lastAt;
    const at = isEdge ? undefined : (Math.max(to, window.firstAt) as UnixSeconds);
    this.#shiftMs = at === undefined ? 0 : 1000 * (window!.lastAt - at);
    for (const reader of this.#readers) reader.seek(at);
  }

  /** When the newest data arrived, for a player at the edge; undefined for a player further back. */
  noDataSince(source: SegmentSource): Instant | undefined {
    return this.#shiftMs === 0 ? source.livePosition?.()?.heardAt : undefined;
  }

  /** The current position of the player: that of its newest connection. */
  position(source: SegmentSource): PlayerPosition | undefined {
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
      // A player that went back is sent some seconds more than it shows.
      isAtEdge: Math.max(behindSeconds, this.#shiftMs / 1000) <= EDGE_SECONDS,
    };
  }
}

/** Builds the error for a `liveseek` that is not possible. */
export function cannotSeek(why: string): SluiceError {
  return new SluiceError("bad_parameter", `liveseek: ${why}`);
}
