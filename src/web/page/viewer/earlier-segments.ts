import { SluiceError } from "../../../base/errors.ts";
import type { LiveWindow } from "../../../live/window/live-window.ts";
import { type KeptSegment, readRange } from "../../../live/window/live-window-segment.ts";
import {
  decodePieces,
  type PieceVerification,
  verifiedPieces,
} from "../../../live/window/verified-pieces.ts";
import type { ListedSegment } from "../../../transfer/piece-segments.ts";
import { segmentNumber } from "../../../transfer/segment-source.ts";
import type { TakePieces } from "./piece-exchange.ts";

/** Up to this many segments between the listed ones and those of the window are listed as well: they ended while the page opened. */
const MAX_UNLISTED = 8;
/** The time of a segment may differ from the listed one by this, because pieces are cut at other places than segments. */
const TIME_TOLERANCE_MS = 2_000;

export interface EarlierSegmentsOptions extends PieceVerification {
  /** The segments that the engine had when the page opened, oldest first. */
  readonly listed: readonly ListedSegment[];
  /** How far the viewer can go back. */
  readonly limitMs: number;
  /** Returns a new window for the pieces of one segment. */
  readonly makeWindow: () => LiveWindow;
  /** Pass the pieces of a segment (`encodePieces`) to `take`, which verifies them. The engine is asked if no page has genuine ones. */
  readonly fromPages: PieceSource;
  readonly fromEngine: PieceSource;
}

type PieceSource = (number: number, signal: AbortSignal, take: TakePieces) => Promise<unknown>;

/** The segments of a live stream from before this page joined. Each is fetched as pieces when the viewer goes back to it, and verified. */
export class EarlierSegments {
  readonly #options: EarlierSegmentsOptions;
  #listed: readonly ListedSegment[];
  /** Segments so far. */
  readonly loaded = { fromPages: 0, fromEngine: 0 };

  constructor(options: EarlierSegmentsOptions) {
    this.#options = options;
    this.#listed = options.listed;
  }

  /** Returns the segments right before the first one of the window, oldest first. */
  before({ facts, endMs }: KeptSegment): readonly ListedSegment[] {
    const { number: first, startMs } = facts;
    const oldestMs = endMs - this.#options.limitMs;
    const listed = this.#listed.filter((each) => each.number < first && each.startMs > oldestMs);
    const last = listed.at(-1);
    if (!last) return [];
    const missing = first - last.number - 1;
    if (missing > MAX_UNLISTED) return [];
    const lastEndMs = last.startMs + last.durationMs;
    const durationMs = Math.max(1, (startMs - lastEndMs) / missing);
    for (let i = 0; i < missing; i++)
      listed.push({ number: last.number + 1 + i, startMs: lastEndMs + i * durationMs, durationMs });
    this.#listed = listed;
    return listed;
  }

  /** Returns the segment with this number in its URL, if {@link load} may bring it. */
  find(number: number): ListedSegment | undefined {
    return this.#listed.find((each) => segmentNumber(0, each.number) === number);
  }

  /** Returns the bytes of a segment. Rejects with `no_such_segment` if no source brings its genuine pieces. */
  async load(listed: ListedSegment, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const { fromPages, fromEngine } = this.#options;
    for (const source of [fromPages, fromEngine]) {
      let segment: Uint8Array<ArrayBuffer> | undefined;
      const take: TakePieces = async (bytes) => {
        segment = await this.#verified(listed, bytes);
        return segment !== undefined;
      };
      await source(listed.number, signal, take).catch(() => {});
      signal.throwIfAborted();
      if (!segment) continue;
      if (source === fromPages) this.loaded.fromPages++;
      else this.loaded.fromEngine++;
      return segment;
    }
    throw new SluiceError("no_such_segment", "no viewer nor the engine has this segment any more");
  }

  async #verified(
    { number, startMs }: ListedSegment,
    bytes: Uint8Array,
  ): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const pieces = verifiedPieces(decodePieces(bytes, this.#options.file), this.#options);
    const window = this.#options.makeWindow();
    for (const { header, chunks } of pieces) window.piece(header.value, chunks);
    const segment = window.segments.find(({ facts, isWhole }) => isWhole && facts.number === number);
    // Not one of another time that has the same number.
    if (!segment || Math.abs(segment.facts.startMs - startMs) > TIME_TOLERANCE_MS) return undefined;
    return readRange(window, segment, 0, segment.mediaBytes);
  }
}
