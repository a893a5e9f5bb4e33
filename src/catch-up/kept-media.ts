import { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import { after } from "../base/time.ts";
import { writeMediaManifest } from "../media/manifest.ts";
import { deltaTicks, TICKS_PER_SECOND } from "../media/timestamps.ts";
import type { Clock, Files, OpenFile } from "../runtime/contract.ts";
import type { KeptSegment, TimeSpan } from "./catch-up-contract.ts";
import type { Block, BlockCut, KeptBlocks } from "./kept-blocks.ts";

/** Dependencies of the readers. */
export interface ReaderDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly blocks: KeptBlocks;
  readonly unixMs: () => number;
}

const CHUNK_BYTES = 188 * 697;
/** A longer time without media is a gap. */
const GAP_MS = 2_000;
/** A segment that is longer, or seems to be, has the duration of its arrival. */
const MAX_SEGMENT_MS = 60_000;
/** Media of a time arrives at most this much later. */
export const LATE_MS = 15_000;
/** A reader that waits looks at the clock at this interval. */
const WAIT_MS = 1_000;

/** Returns the parts of a time that some blocks hold. */
export function spansOf(blocks: readonly Block[], { startMs, endMs }: TimeSpan): TimeSpan[] {
  const spans: { startMs: number; endMs: number }[] = [];
  for (const block of blocks) {
    const from = Math.max(startMs, block.startMs);
    const to = Math.min(endMs, block.endMs);
    if (to <= from) continue;
    const last = spans.at(-1);
    if (last && from - last.endMs <= GAP_MS) last.endMs = Math.max(last.endMs, to);
    else spans.push({ startMs: from, endMs: to });
  }
  return spans;
}

/** Returns the segments of a time, from the last key frame at or before its start on. */
export async function segmentsOf(
  blocks: KeptBlocks,
  channel: string,
  { startMs, endMs }: TimeSpan,
): Promise<KeptSegment[]> {
  const segments: KeptSegment[] = [];
  for (const block of blocks.of(channel)) {
    if (block.endMs <= startMs || block.startMs >= endMs) continue;
    const { bytes, endMs: blockEndMs, isClosed } = block;
    const cuts = await blocks.cuts(block);
    for (const [i, cut] of cuts.entries()) {
      const next = cuts[i + 1];
      // The last segment of a block that is being written has no end yet.
      if (!next && !isClosed) break;
      const segmentEndMs = next?.timeMs ?? blockEndMs;
      if (cut.timeMs >= endMs) break;
      if (segmentEndMs <= startMs) continue;
      segments.push({
        block: block.startMs,
        range: { start: cut.at, end: next?.at ?? bytes },
        startMs: cut.timeMs,
        endMs: Math.max(cut.timeMs + 1, segmentEndMs),
        durationMs: durationOf(cut, next, segmentEndMs),
        isDiscontinuous: cut.isDiscontinuous && segments.length > 0,
      });
    }
  }
  return segments;
}

function durationOf(cut: BlockCut, next: BlockCut | undefined, endMs: number): number {
  if (next?.ticks !== undefined && cut.ticks !== undefined) {
    const ms = (1000 * deltaTicks(next.ticks, cut.ticks)) / TICKS_PER_SECOND;
    if (ms > 0 && ms <= MAX_SEGMENT_MS) return ms;
  }
  return Math.min(MAX_SEGMENT_MS, Math.max(1, endMs - cut.timeMs));
}

/** Writes an HLS media manifest of segments: a complete one, or one to which segments are appended. */
export function manifestOf(
  segments: readonly KeptSegment[],
  isGrowing: boolean,
  uriOf: (segment: KeptSegment) => string,
): string {
  return writeMediaManifest({
    kind: isGrowing ? "event" : "vod",
    segments: segments.map((segment) => ({
      durationSeconds: segment.durationMs / 1000,
      uri: uriOf(segment),
      programDateTimeMs: segment.startMs,
      isDiscontinuous: segment.isDiscontinuous,
    })),
  });
}

/** A part of a file. */
export interface FilePart {
  readonly path: string;
  readonly range: ByteRange;
}

/** Streams parts of files one after the other; pull drives it. `next` returns undefined at the end. */
export function streamOf(
  files: Files,
  next: (signal: AbortSignal) => Promise<FilePart | undefined>,
): ReadableStream<Uint8Array> {
  const over = new AbortController();
  let part: { readonly file: OpenFile; readonly path: string; at: number; end: number } | undefined;
  const leave = async () => {
    const { file } = part ?? {};
    part = undefined;
    await file?.close();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (!part || part.at >= part.end) {
            const found = await next(over.signal);
            if (!found || found.path !== part?.path) await leave();
            if (over.signal.aborted) return;
            if (!found) return controller.close();
            const { path, range } = found;
            part = { file: part?.file ?? (await files.open(path)), path, at: range.start, end: range.end };
          }
          const chunk = new Uint8Array(Math.min(CHUNK_BYTES, part.end - part.at));
          await part.file.read(part.at, chunk);
          part.at += chunk.length;
          if (!over.signal.aborted) controller.enqueue(chunk);
        } catch (error) {
          await leave();
          throw error;
        }
      },
      async cancel() {
        over.abort();
        await leave();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Streams bytes of segments that follow each other. */
export function segmentStream(
  { files, blocks }: ReaderDependencies,
  channel: string,
  segments: readonly KeptSegment[],
  range: ByteRange,
): ReadableStream<Uint8Array> {
  let index = 0;
  /** Offset of the segment among all. */
  let before = 0;
  return streamOf(files, async () => {
    for (; index < segments.length && before < range.end; index++) {
      const { block, range: whole } = segments[index]!;
      const length = whole.end - whole.start;
      const start = whole.start + Math.max(0, range.start - before);
      const end = whole.start + Math.min(length, range.end - before);
      before += length;
      if (start >= end) continue;
      if (!blocks.of(channel).some(({ startMs }) => startMs === block))
        throw new SluiceError(
          "no_such_segment",
          "this part was removed, because newer media needed its space",
        );
      index++;
      return { path: blocks.path({ channel, startMs: block }), range: { start, end } };
    }
    return undefined;
  });
}

/** Streams the media of a time while it is written; see `CatchUp.follow`. */
export function followStream(
  { files, blocks, clock, unixMs }: ReaderDependencies,
  channel: string,
  { startMs, endMs }: TimeSpan,
  isKept: () => boolean,
): ReadableStream<Uint8Array> {
  let place: { readonly block: Block; at: number } | undefined;
  return streamOf(files, async (signal) => {
    while (!signal.aborted) {
      const all = blocks.of(channel);
      const from = place ? place.block.startMs : Number.NEGATIVE_INFINITY;
      const isRead = place !== undefined && place.at >= place.block.bytes;
      if (!place || (isRead && place.block.isClosed) || !all.includes(place.block)) {
        const block = all.find((each) => each.startMs > from && each.endMs > startMs);
        if (block && block.startMs >= endMs) return undefined;
        if (block) {
          const cuts = await blocks.cuts(block);
          const first = place ? 0 : cuts.findLast(({ timeMs }) => timeMs <= startMs)?.at;
          place = { block, at: first ?? cuts[0]?.at ?? 0 };
          continue;
        }
      } else if (!isRead) {
        const { block, at } = place;
        const end = (await blocks.cuts(block)).find(({ timeMs }) => timeMs >= endMs)?.at;
        const until = Math.min(block.bytes, end ?? block.bytes);
        if (until <= at) return undefined;
        place.at = until;
        return { path: blocks.path(block), range: { start: at, end: until } };
      }
      if (!isKept() || unixMs() > endMs + LATE_MS) return undefined;
      await nextChange(blocks, clock, signal);
    }
    return undefined;
  });
}

/** Waits for the next change of the blocks, or a second. */
function nextChange(blocks: KeptBlocks, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stopListening();
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const stopListening = blocks.onChange(done);
    const cancel = clock.at(after(clock.now(), WAIT_MS), done);
    signal.addEventListener("abort", done);
  });
}
