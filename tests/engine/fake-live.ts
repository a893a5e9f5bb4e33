import { SluiceError } from "../../src/base/errors.ts";
import type { Instant, UnixSeconds } from "../../src/base/time.ts";
import type { LiveControl } from "../../src/transfer/contract.ts";
import type {
  LiveCursor,
  LivePosition,
  LiveStream,
  ManifestPlace,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../../src/transfer/segment-source.ts";
import { tsBytes } from "./fake-media.ts";

/** When the first piece of a fake stream was made. */
export const FIRST_AT = 1_700_000_000;

/** A live stream whose pieces the test adds: one per second, ten packets with the piece number each, a cut every two. */
export class FakeLive implements SegmentSource, LiveStream {
  readonly container = "ts";
  readonly isLive = true;
  readonly name = "live";
  readonly live: LiveStream = this;
  /** The requests received. */
  readonly made: string[] = [];
  readonly places: ManifestPlace[] = [];
  /** The number of aborted waits. */
  readonly aborted: unknown[] = [];
  packetsPerPiece = 10;
  segmentBytes = 188;
  /** Pieces below this have left the window. */
  oldest = 0;
  /** When the newest piece arrived; undefined if unknown. */
  heardAt: Instant | undefined;
  #count = 0;
  #isOver = false;
  #waiting: (() => void)[] = [];

  /** Adds this many pieces. */
  bring(count: number): void {
    this.#count += count;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Ends the stream. */
  finish(): void {
    this.#isOver = true;
    this.bring(0);
  }

  cursor(shiftMs: number): LiveCursor {
    let at: number | undefined;
    let isLost = true;
    const cut = (piece: number) => Math.max(this.oldest, piece - (piece % 2));
    const settle = () => {
      if (isLost && this.#count > 0) at = cut(this.#count - 1 - Math.floor(shiftMs / 1000));
      isLost &&= this.#count === 0;
      if (at !== undefined && at < this.oldest) at = cut(this.oldest);
    };
    return {
      next: async (signal) => {
        for (;;) {
          settle();
          if (at !== undefined && at < this.#count) return tsBytes(at++ & 0xff, this.packetsPerPiece);
          if (this.#isOver) return undefined;
          await this.#more(signal);
        }
      },
      seek: (to) => {
        at = to === undefined ? cut(this.#count - 1) : cut(to - FIRST_AT);
        this.bring(0);
      },
      get position() {
        settle();
        return at === undefined ? undefined : ((FIRST_AT + at) as UnixSeconds);
      },
    };
  }

  async part(index: number, part: number): Promise<SegmentBytes> {
    this.made.push(`${index}.p${part}`);
    return tsBytes(part, 1);
  }

  async manifest(place: ManifestPlace, _rendition: unknown, signal: AbortSignal): Promise<string> {
    this.places.push(place);
    while (this.#count < 2 || (place.reload && place.reload.segment >= this.#count)) await this.#more(signal);
    return `#EXTM3U\n#EXTINF:1,\nsegments below ${this.#count}\n`;
  }

  async first(): Promise<number> {
    throw new Error("a live stream does not begin with a whole segment");
  }

  async reach(): Promise<number> {
    throw new Error("a live stream does not go by whole segments");
  }

  async find(_kind: SegmentName["kind"], number: number): Promise<number> {
    if (number < this.#count) return number;
    throw new SluiceError("no_such_segment", "not there");
  }

  async make(kind: SegmentName["kind"], index: number): Promise<SegmentBytes> {
    this.made.push(`${kind} ${index}`);
    return new Uint8Array(this.segmentBytes);
  }

  livePosition(): LivePosition | undefined {
    if (this.#count <= this.oldest) return undefined;
    return {
      firstAt: (FIRST_AT + this.oldest) as UnixSeconds,
      lastAt: (FIRST_AT + this.#count - 0.5) as UnixSeconds,
      segments: this.#count - this.oldest,
      pieceMs: 500,
      ...(this.heardAt !== undefined && { heardAt: this.heardAt }),
    };
  }

  #more(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      signal.addEventListener("abort", () => {
        this.aborted.push(signal.reason);
        reject(signal.reason);
      });
    });
  }
}

/** The live control of a transfer, for code that checks its role in the stream. */
export function fakeControl(role: "viewer" | "source" = "viewer"): LiveControl {
  const figures = () => ({ receivedBytes: 0 });
  const file = { info: { bytesPerSecond: 1_000_000 } };
  return { content: { role, file }, figures, minutesAhead: 0, variants: [] } as unknown as LiveControl;
}
