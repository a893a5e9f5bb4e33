import { SluiceError } from "../base/errors.ts";
import type { ByteRange } from "../base/range.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { SegmentBytes } from "../transfer/segment-source.ts";

/** A response whose player has not read for this time no longer keeps its segment in memory. A slow player reads more often. */
const KEEP_MS = 2_000;
/** Size of the buffer for a consumer that has none. */
const CHUNK_BYTES = 256 * 1024;

/** A segment for one response. */
export interface SegmentBody {
  readonly size: number;
  /** Returns the bytes of a range, driven by the reader's pull. Called at most once. */
  open(range: ByteRange): ReadableStream<Uint8Array>;
}

/**
 * Makes a body of a segment. A player that stops reading costs a buffer: its segment leaves memory, and `again` makes it when the
 * player continues; without `again` it stays. The bytes are copied into the buffer of the connection, so that no view of the segment
 * is left there.
 */
export function segmentBody(
  clock: Clock,
  bytes: SegmentBytes,
  again?: (signal: AbortSignal) => Promise<SegmentBytes>,
): SegmentBody {
  const size = bytes.length;
  let held: SegmentBytes | undefined = bytes;
  const open = ({ start, end }: ByteRange) => {
    const closed = new AbortController();
    let at = start;
    let readAt = clock.now();
    let cancelTimer: (() => void) | undefined;
    const watch = (afterMs: number) => {
      if (!again) return;
      cancelTimer = clock.at(after(clock.now(), afterMs), () => {
        cancelTimer = undefined;
        const idleMs = clock.now() - readAt;
        if (idleMs < KEEP_MS) watch(KEEP_MS - idleMs);
        else held = undefined;
      });
    };
    const finish = (reason?: unknown) => {
      cancelTimer?.();
      held = undefined;
      closed.abort(reason);
    };
    watch(KEEP_MS);
    return new ReadableStream(
      {
        type: "bytes",
        autoAllocateChunkSize: CHUNK_BYTES,
        async pull(controller) {
          held ??= await again!(closed.signal);
          const segment = held;
          if (closed.signal.aborted) return;
          if (segment.length !== size) throw new SluiceError("broken_media", "the segment has changed");
          readAt = clock.now();
          if (!cancelTimer) watch(KEEP_MS);
          const { view } = controller.byobRequest!;
          const length = Math.min(view!.byteLength, end - at);
          new Uint8Array(view!.buffer, view!.byteOffset, length).set(segment.subarray(at, at + length));
          at += length;
          if (at === end) finish();
          controller.byobRequest!.respond(length);
          if (at === end) controller.close();
        },
        cancel: finish,
      },
      { highWaterMark: 0 },
    );
  };
  return { size, open };
}
