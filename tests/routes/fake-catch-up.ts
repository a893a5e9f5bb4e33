import type { CatchUp, KeptSegment, TimeSpan } from "../../src/catch-up/catch-up-contract.ts";
import { manifestOf } from "../../src/catch-up/kept-media.ts";
import type { Item } from "../../src/library/contract.ts";

/** Bytes of each segment. */
const SEGMENT_BYTES = 1_000;
const SEGMENT_MS = 10_000;

/** Catch-up that has kept the last hour of the channels that were added, except its first minute. Segments have 1,000 bytes and ten seconds. */
export class FakeCatchUp implements CatchUp {
  readonly windowMs = 2 * 86_400_000;
  readonly #kept = new Map<number, Item>();
  readonly startMs = 10_000 * Math.floor(Date.now() / 10_000) - 3_540_000;

  list(item?: Item) {
    const [spans, bytes] = [[{ startMs: this.startMs, endMs: Date.now() }], 354_000];
    return [...this.#kept.values()]
      .filter((each) => !item || each === item)
      .map(({ id, title }) => ({
        ...{ channel: "c".repeat(40), itemId: id, title, bytes, spans, problem: null },
      }));
  }

  async add(item: Item) {
    this.#kept.set(item.id, item);
  }

  async remove(item: Item) {
    this.#kept.delete(item.id);
  }

  isKept(item: Item) {
    return this.#kept.has(item.id);
  }

  spans(item: Item, { startMs, endMs }: TimeSpan) {
    const span = { startMs: Math.max(startMs, this.startMs), endMs: Math.min(endMs, Date.now()) };
    return this.isKept(item) && span.startMs < span.endMs ? [span] : [];
  }

  async open(item: Item, span: TimeSpan) {
    const segments: KeptSegment[] = [];
    for (let at = this.startMs; at < Math.min(span.endMs, Date.now()); at += SEGMENT_MS)
      if (this.isKept(item) && at + SEGMENT_MS > span.startMs)
        segments.push({
          ...{
            block: this.startMs,
            startMs: at,
            endMs: at + SEGMENT_MS,
            durationMs: SEGMENT_MS,
            isDiscontinuous: false,
          },
          range: { start: (at - this.startMs) / 10, end: (at - this.startMs) / 10 + SEGMENT_BYTES },
        });
    if (segments.length === 0) return undefined;
    const isGrowing = span.endMs > Date.now();
    const manifest = (uriOf: (segment: KeptSegment) => string) => manifestOf(segments, isGrowing, uriOf);
    const read = ({ start, end }: { start: number; end: number }) => bytes(end - start);
    return { segments, bytes: SEGMENT_BYTES * segments.length, isGrowing, read, manifest };
  }

  follow() {
    return bytes(7);
  }

  file(item: Item, block: number, { start, end }: { start: number; end: number }) {
    return this.isKept(item) && block === this.startMs ? bytes(end - start) : undefined;
  }
}

function bytes(length: number): ReadableStream<Uint8Array> {
  return new Blob([new Uint8Array(length)]).stream();
}
