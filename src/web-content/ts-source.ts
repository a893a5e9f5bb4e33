import { onAbort } from "../async/abort.ts";
import { equalBytes } from "../base/bytes.ts";
import { SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { UnixSeconds } from "../base/time.ts";
import { writeMediaManifest } from "../media/manifest.ts";
import { type TsSegment, TsSegmenter } from "../remux/ts-segmenter.ts";
import type { WebContent } from "../transfer/contract.ts";
import type {
  LivePosition,
  ManifestPlace,
  SegmentBytes,
  SegmentName,
  SegmentSource,
} from "../transfer/segment-source.ts";
import { segmentNumber } from "../transfer/segment-source.ts";
import { ReadPressure } from "./read-pressure.ts";
import { mayRecover, type WebClient, wrongStatus } from "./web-client.ts";

const TARGET_SECONDS = 2;
/** The first segment of a connection ends at the first key frame after this time: a player, or a channel whose other source failed, waits for it. */
const FIRST_SECONDS = 0.5;
/** Limits of the segments kept for players that lag behind; the first one reached applies. */
const KEPT_SEGMENTS = 10;
const KEPT_BYTES = 24 * 1024 * 1024;
const MAX_SEGMENT_BYTES = 8 * 1024 * 1024;
/** Segments fetched beyond the one that an HLS player requested last. */
const AHEAD_SEGMENTS = 3;
/** Segments before the live edge at which a player starts, as its initial buffer. */
const BEHIND_EDGE = 2;
/** The manifest is held back until it lists this many segments: players need three (RFC 8216 6.3.3). */
const MIN_LISTED = 3;
/** Time without requests after which the connection is closed; a later request starts a new one. */
const LINGER_MS = 60_000;
/** Delays between connection attempts; the last one repeats. */
const RETRY_MS = [0, 1_000, 2_000, 5_000, 10_000];
/** Bytes compared to detect a file that restarts: they contain clocks and video. */
const HEAD_BYTES = 16 * 1024;
const MIN_HEAD_BYTES = 1024;
/** Consecutive attempts without a new segment after which the stream fails. */
const MAX_FAILURES = 8;

interface Kept {
  readonly index: number;
  readonly segment: TsSegment;
  readonly madeAt: UnixSeconds;
}

/**
 * An endless transport stream of a web server, cut into segments that all its players share. It reads only while players
 * need segments. A player that falls behind the stored segments continues at the oldest.
 */
export class TsSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive = true;
  readonly name: string;
  readonly #client: WebClient;
  readonly #content: WebContent;
  readonly #pressure: ReadPressure;
  #kept: Kept[] = [];
  #next = 0;
  #discontinuities = 0;
  /** The connection was lost before the next segment. */
  #isInterrupted = false;
  /** The server could not be reached again. */
  #isUnreachable = false;
  /** The highest index requested so far. */
  #requested = 0;
  /** The first bytes of the first connection. */
  #head: Uint8Array | undefined;
  #failure: unknown;
  #isOver = false;

  constructor(client: WebClient, content: WebContent, infohash: Infohash) {
    this.#client = client;
    this.#content = content;
    this.name = `${infohash}/stream`;
    this.#pressure = new ReadPressure(client.clock, LINGER_MS, (signal) => this.#run(signal));
    onAbort(client.stopped.signal, () => this.#pressure.end(client.stopped.signal.reason));
  }

  async manifest(place: ManifestPlace, _rendition: unknown, signal: AbortSignal): Promise<string> {
    while (this.#kept.length < MIN_LISTED && !this.#isOver) await this.#more(signal);
    // An HLS player that reloads the manifest still plays.
    this.#pressure.touch();
    return writeMediaManifest({
      kind: "live",
      isEnded: this.#isOver,
      firstNumber: this.#kept[0]?.index ?? this.#next,
      firstDiscontinuity: this.#discontinuities,
      targetSeconds: 3 * TARGET_SECONDS,
      segments: this.#kept.map(({ index, segment }) => ({
        durationSeconds: segment.durationSeconds,
        uri: place.urls.segment(index, "ts"),
        isDiscontinuous: segment.isDiscontinuous,
      })),
    });
  }

  async first(signal: AbortSignal): Promise<number> {
    while (this.#kept.length === 0 && !this.#isOver) await this.#more(signal);
    return Math.max(this.#kept[0]?.index ?? this.#next, this.#next - BEHIND_EDGE);
  }

  async reach(index: number, signal: AbortSignal): Promise<number | undefined> {
    while (index >= this.#next) {
      if (this.#isOver) return undefined;
      await this.#more(signal);
    }
    return Math.max(index, this.#kept[0]?.index ?? index);
  }

  async find(kind: SegmentName["kind"], number: number): Promise<number> {
    const found = this.#kept.find(({ index }) => segmentNumber(0, index) === number);
    if (kind === "ts" && found) {
      this.#requested = Math.max(this.#requested, found.index);
      this.#pressure.touch();
      return found.index;
    }
    throw new SluiceError("no_such_segment", "the segment has left the live window or never existed");
  }

  async make(_kind: SegmentName["kind"], index: number): Promise<SegmentBytes> {
    const found = this.#kept.find((kept) => kept.index === index);
    if (found) return found.segment.bytes;
    throw new SluiceError("no_such_segment", "the segment has left the live window or never existed");
  }

  livePosition(): LivePosition | undefined {
    const [first, last] = [this.#kept[0], this.#kept.at(-1)];
    return first && last && { firstAt: first.madeAt, lastAt: last.madeAt, segments: this.#kept.length };
  }

  /** True from a failed connection until the next one delivers. */
  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }

  /** No player has the stream: closes the connection, whose buffers would be minutes old later, and drops what was kept. */
  rest(): void {
    this.#pressure.rest();
    for (const { segment } of this.#kept) if (segment.isDiscontinuous) this.#discontinuities++;
    this.#kept = [];
    // A file starts again.
    this.#head = undefined;
  }

  /** Waits for the next segment. */
  async #more(signal: AbortSignal): Promise<void> {
    await this.#pressure.wait(signal);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Whether to read on: a player waits, or plays near the live edge. */
  get #isWanted(): boolean {
    return this.#pressure.hasWaiters || this.#next <= this.#requested + AHEAD_SEGMENTS;
  }

  /** Reads the stream and reconnects as long as players read it. */
  async #run(signal: AbortSignal): Promise<void> {
    this.#failure = undefined;
    try {
      for (let failures = 0; ; failures++) {
        if (failures > 0)
          await this.#client.pause(RETRY_MS[Math.min(failures, RETRY_MS.length) - 1]!, signal);
        const before = this.#next;
        const failure = await this.#read(signal);
        if (this.#isOver) return;
        if (failure !== undefined && !mayRecover(failure)) throw failure;
        if (this.#next > before) failures = 0;
        else if (failures + 1 >= MAX_FAILURES)
          throw (
            failure ??
            new SluiceError("url_unreachable", "the server repeatedly closes the stream without data")
          );
      }
    } catch (thrown) {
      if (!signal.aborted) this.#failure = thrown;
    }
  }

  /** Reads a connection until it ends. Resolves to the error, or undefined if the server closed it normally. */
  async #read(signal: AbortSignal): Promise<unknown> {
    const segmenter = new TsSegmenter({
      targetSeconds: TARGET_SECONDS,
      firstSeconds: FIRST_SECONDS,
      maxSegmentBytes: MAX_SEGMENT_BYTES,
    });
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    let isAnswered = false;
    try {
      const limitBytes = Number.POSITIVE_INFINITY;
      const options = { limitBytes, decode: false, purpose: "stream", signal };
      const answer = await this.#client.open(this.#content.url, options);
      reader = answer.body.getReader();
      if (answer.status !== 200) throw wrongStatus(answer.status, "the stream");
      isAnswered = true;
      const hasEnd = answer.headers.has("content-length");
      for (let isFirst = true; ; isFirst = false) {
        await this.#pressure.until(() => this.#isWanted, signal);
        const { done, value } = await reader.read();
        if (done) {
          for (const segment of segmenter.flush()) this.#keep(segment);
          if (hasEnd) this.#end();
          return undefined;
        }
        // The same bytes again: this is a file, not a live stream, and it was played to its end.
        if (isFirst && this.#isKnownHead(value)) return this.#end();
        for (const segment of segmenter.push(value)) this.#keep(segment);
      }
    } catch (thrown) {
      return thrown;
    } finally {
      reader?.cancel().catch(() => {}); // Closing a failed connection may fail.
      this.#isInterrupted = true;
      if (!isAnswered) this.#isUnreachable = true;
    }
  }

  #isKnownHead(bytes: Uint8Array): boolean {
    const head = bytes.slice(0, HEAD_BYTES);
    const before = this.#head;
    this.#head ??= head;
    const length = Math.min(head.length, before?.length ?? 0);
    return length >= MIN_HEAD_BYTES && equalBytes(head.subarray(0, length), before!.subarray(0, length));
  }

  #end(): undefined {
    this.#isOver = true;
    this.#pressure.notify();
  }

  #keep(segment: TsSegment): void {
    const isDiscontinuous = segment.isDiscontinuous || (this.#isInterrupted && this.#next > 0);
    this.#isInterrupted = false;
    this.#isUnreachable = false;
    const madeAt = this.#client.clock.unixSeconds();
    this.#kept.push({ index: this.#next++, segment: { ...segment, isDiscontinuous }, madeAt });
    let bytes = this.#kept.reduce((sum, kept) => sum + kept.segment.bytes.length, 0);
    while (this.#kept.length > KEPT_SEGMENTS || (bytes > KEPT_BYTES && this.#kept.length > MIN_LISTED)) {
      const removed = this.#kept.shift()!;
      bytes -= removed.segment.bytes.length;
      if (removed.segment.isDiscontinuous) this.#discontinuities++;
    }
    this.#pressure.notify();
  }
}
