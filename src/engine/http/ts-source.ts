import { equalBytes } from "../../base/bytes.ts";
import { SluiceError } from "../../base/errors.ts";
import type { Infohash } from "../../base/ids.ts";
import type { UnixSeconds } from "../../base/time.ts";
import { writeMediaManifest } from "../../media/manifest.ts";
import { type TsSegment, TsSegmenter } from "../../remux/ts-segmenter.ts";
import type { SegmentName } from "../engine.ts";
import type { SegmentBytes } from "../segment-cache.ts";
import type { LivePosition, ManifestPlace, SegmentSource } from "../segment-source.ts";
import { segmentNumber } from "../session-segments.ts";
import { Hunger } from "./hunger.ts";
import { mayRecover, type WebClient, wrongStatus } from "./web-client.ts";
import type { WebContent } from "./web-content.ts";

/** Short, so that the first is there soon. */
const TARGET_SECONDS = 2;
/** What is kept for players that are behind, whichever comes first. */
const KEPT_SEGMENTS = 10;
const KEPT_BYTES = 24 * 1024 * 1024;
const MAX_SEGMENT_BYTES = 8 * 1024 * 1024;
/** An HLS player has so many made beyond the one it asks for. */
const AHEAD_SEGMENTS = 3;
/** A player begins so many segments before the edge, to have something in hand. */
const BEHIND_EDGE = 2;
/** A manifest says nothing before it can name so many segments: players want three (RFC 8216 6.3.3). */
const LEAST_LISTED = 3;
/** A stream that nobody waits for is left alone after so long; whoever comes then finds a new beginning. */
const LINGER_MS = 60_000;
/** Waits between attempts to reach an origin that has dropped us; the last one again and again. */
const RETRY_MS = [0, 1_000, 2_000, 5_000, 10_000];
/** So much of the beginning tells two streams apart: it holds clocks and pictures. */
const HEAD_BYTES = 16 * 1024;
const LEAST_HEAD_BYTES = 1024;
/** An origin that has not sent a byte in so many attempts is given up. */
const MAX_FAILURES = 8;

interface Kept {
  readonly index: number;
  readonly segment: TsSegment;
  readonly madeAt: UnixSeconds;
}

/**
 * An endless transport stream of a web server, cut into segments that all its players share: read on while anybody waits
 * for the next, at most one segment ahead; a player that falls behind what is kept goes on at what is oldest then.
 */
export class TsSource implements SegmentSource {
  readonly container = "ts";
  readonly isLive = true;
  readonly name: string;
  readonly #client: WebClient;
  readonly #content: WebContent;
  readonly #hunger: Hunger;
  #kept: Kept[] = [];
  #next = 0;
  #discontinuities = 0;
  /** The stream broke before the segment that comes next. */
  #hasBroken = false;
  /** The latest that anybody has asked for. */
  #asked = 0;
  /** How the first connection began. */
  #head: Uint8Array | undefined;
  #failure: unknown;
  #isOver = false;

  constructor(client: WebClient, content: WebContent, infohash: Infohash) {
    this.#client = client;
    this.#content = content;
    this.name = `${infohash}/stream`;
    this.#hunger = new Hunger(client.clock, LINGER_MS, (signal) => this.#run(signal));
    client.stopped.signal.addEventListener("abort", () => this.#hunger.end(client.stopped.signal.reason), {
      once: true,
    });
  }

  async manifest(place: ManifestPlace, _rendition: unknown, signal: AbortSignal): Promise<string> {
    while (this.#kept.length < LEAST_LISTED && !this.#isOver) await this.#more(signal);
    // Reading the manifest again is how an HLS player waits.
    this.#hunger.visit();
    const { session, base } = place;
    return writeMediaManifest({
      kind: "live",
      isEnded: this.#isOver,
      firstNumber: this.#kept[0]?.index ?? this.#next,
      firstDiscontinuity: this.#discontinuities,
      targetSeconds: 3 * TARGET_SECONDS,
      segments: this.#kept.map(({ index, segment }) => ({
        durationSeconds: segment.durationSeconds,
        uri: `${base}/ace/c/${session.infohash}/${segmentNumber(session.ordinal, index)}.ts`,
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
      this.#asked = Math.max(this.#asked, found.index);
      this.#hunger.visit();
      return found.index;
    }
    throw new SluiceError("no_such_segment", "the segment has gone by, or never was");
  }

  async make(_kind: SegmentName["kind"], index: number): Promise<SegmentBytes> {
    const found = this.#kept.find((kept) => kept.index === index);
    if (found) return found.segment.bytes;
    throw new SluiceError("no_such_segment", "the segment has gone by, or never was");
  }

  livePosition(): LivePosition | undefined {
    const [first, last] = [this.#kept[0], this.#kept.at(-1)];
    return first && last && { firstAt: first.madeAt, lastAt: last.madeAt, segments: this.#kept.length };
  }

  /** Waits for one more segment. */
  async #more(signal: AbortSignal): Promise<void> {
    await this.#hunger.wait(signal);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Whether to read on: somebody waits, or plays near the edge. */
  get #isWanted(): boolean {
    return this.#hunger.isWaitedFor || this.#next <= this.#asked + AHEAD_SEGMENTS;
  }

  /** Reads the stream, connection after connection, while somebody is hungry. */
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
          throw failure ?? new SluiceError("url_unreachable", "the server ends the stream again and again");
      }
    } catch (thrown) {
      if (!signal.aborted) this.#failure = thrown;
    }
  }

  /** One connection, to its end; resolves to why it ended, undefined where the server ended it in order. */
  async #read(signal: AbortSignal): Promise<unknown> {
    const segmenter = new TsSegmenter({ targetSeconds: TARGET_SECONDS, maxSegmentBytes: MAX_SEGMENT_BYTES });
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const limitBytes = Number.POSITIVE_INFINITY;
      const options = { limitBytes, decode: false, purpose: "stream", signal };
      const answer = await this.#client.open(this.#content.url, options);
      reader = answer.body.getReader();
      if (answer.status !== 200) throw wrongStatus(answer.status, "the stream");
      const hasEnd = answer.headers.has("content-length");
      for (let isFirst = true; ; isFirst = false) {
        await this.#hunger.until(() => this.#isWanted, signal);
        const { done, value } = await reader.read();
        if (done) {
          for (const segment of segmenter.flush()) this.#keep(segment);
          if (hasEnd) this.#end();
          return undefined;
        }
        // Who sends the same again has a file, and no stream: it is over.
        if (isFirst && this.#isKnownHead(value)) return this.#end();
        for (const segment of segmenter.push(value)) this.#keep(segment);
      }
    } catch (thrown) {
      return thrown;
    } finally {
      reader?.cancel().catch(() => {}); // The connection is given up either way.
      this.#hasBroken = true;
    }
  }

  #isKnownHead(bytes: Uint8Array): boolean {
    const head = bytes.slice(0, HEAD_BYTES);
    const before = this.#head;
    this.#head ??= head;
    const length = Math.min(head.length, before?.length ?? 0);
    return length >= LEAST_HEAD_BYTES && equalBytes(head.subarray(0, length), before!.subarray(0, length));
  }

  #end(): undefined {
    this.#isOver = true;
    this.#hunger.serve();
  }

  #keep(segment: TsSegment): void {
    const isDiscontinuous = segment.isDiscontinuous || (this.#hasBroken && this.#next > 0);
    this.#hasBroken = false;
    const madeAt = this.#client.clock.unixSeconds();
    this.#kept.push({ index: this.#next++, segment: { ...segment, isDiscontinuous }, madeAt });
    let bytes = this.#kept.reduce((sum, kept) => sum + kept.segment.bytes.length, 0);
    while (this.#kept.length > KEPT_SEGMENTS || (bytes > KEPT_BYTES && this.#kept.length > LEAST_LISTED)) {
      const gone = this.#kept.shift()!;
      bytes -= gone.segment.bytes.length;
      if (gone.segment.isDiscontinuous) this.#discontinuities++;
    }
    this.#hunger.serve();
  }
}
