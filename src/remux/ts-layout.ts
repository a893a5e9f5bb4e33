import { yieldToLoop } from "../async/event-loop.ts";
import type { ByteRange } from "../base/range.ts";
import { Remuxer } from "./remuxer.ts";

/** After so many segments, pending I/O runs: about 5 ms. */
const STEP_SEGMENTS = 16;

/** The byte positions of the segments of a file in its MPEG-TS. */
export interface TsLayout {
  readonly size: number;
  /** Where the segments begin. */
  readonly starts: readonly number[];
}

/**
 * Sums up the sizes of the segments. Yields to the event loop, because a film has half a million frames. Returns undefined above
 * `limitBytes`: a hostile index can describe mostly pauses, which clock packets fill.
 */
export async function planTsLayout(
  sizes: Iterable<number>,
  limitBytes: number,
  signal: AbortSignal,
): Promise<TsLayout | undefined> {
  const layout = { size: 0, starts: [] as number[] };
  for (const size of sizes) {
    layout.starts.push(layout.size);
    layout.size += size;
    if (layout.size > limitBytes) return undefined;
    if (layout.starts.length % STEP_SEGMENTS !== 0) continue;
    await yieldToLoop();
    signal.throwIfAborted();
  }
  return layout;
}

/** The segments `[from, to)` that contain a range of bytes, and how many bytes of them precede it. */
export function segmentsOf({ starts }: TsLayout, { start, end }: ByteRange) {
  const after = starts.findIndex((at) => at > start);
  const from = (after < 0 ? starts.length : after) - 1;
  const next = starts.findIndex((at) => at >= end);
  return { from, to: Math.max(from + 1, next < 0 ? starts.length : next), skipBytes: start - starts[from]! };
}

/** Returns the stage that passes `length` bytes after the first `skip` bytes. */
export function byteCutter(
  skip: number,
  length: number,
): Remuxer<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let at = -skip;
  return new Remuxer({
    transform(bytes) {
      const part = bytes.subarray(Math.max(0, -at), Math.max(0, length - at));
      at += bytes.length;
      return part.length > 0 ? [part] : [];
    },
    isDone: () => at >= length,
  });
}
