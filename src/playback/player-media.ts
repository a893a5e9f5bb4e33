import { orAborted } from "../async/abort.ts";
import type { Clock } from "../runtime/contract.ts";
import type { PieceReads, PlayerMedia } from "../transfer/segment-source.ts";
import type { SessionLive } from "./session-live.ts";
import type { SessionMedia } from "./session-media.ts";

/** Large enough that the cost per chunk is small, small enough that a slow player receives its next chunk soon. */
const CHUNK_BYTES = 128 * 1024;

/** How the content for one connection is read. */
export interface PlayerReads extends PieceReads {
  readonly clock: Clock;
  /** Waits until the player waits for data. */
  pulled(): Promise<void>;
  /** Runs work on behalf of the player: renews its lease. */
  use<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Opens content for one MPEG-TS connection: a film with its remuxer; live streams and web content are MPEG-TS already. `current`
 * returns the media of the session, which changes with its stream.
 */
export async function playerMedia(
  current: () => Promise<SessionMedia>,
  live: SessionLive,
  reads: PlayerReads,
): Promise<PlayerMedia> {
  const { source } = await current();
  if (source.play) {
    const { signal, range, pulled, wait } = reads;
    return source.play({ signal, range, ready: pulled, wait });
  }
  const pieces = source.live ? live.open(source.live, reads) : segmentPieces(current, reads);
  return { pieces, remuxer: new TransformStream<Uint8Array, Uint8Array>() };
}

/**
 * Returns consecutive segments of a source as a stream. Each pull reads one chunk, and no segment is held between two pulls: those
 * of a stalled player can leave the cache. The next segment is made while one is read.
 */
function segmentPieces(
  current: () => Promise<SessionMedia>,
  { pulled, use }: PlayerReads,
): ReadableStream<Uint8Array> {
  const closed = new AbortController();
  const { signal } = closed;
  /** The segment that is read; undefined before the first. */
  let index: number | undefined;
  let offset = 0;
  let media: SessionMedia;
  const load = async (from: number) => {
    const reached = await use(() => media.reach(from, signal));
    if (reached === undefined) return undefined;
    return { reached, bytes: await use(() => media.segment("ts", reached, 0, signal)) };
  };
  return new ReadableStream(
    {
      async pull(controller) {
        await orAborted(pulled(), signal);
        // A session that changes its stream continues at the same number.
        if (offset === 0) media = await current();
        index ??= await media.source.first(signal);
        for (;;) {
          const loaded = await load(index);
          if (signal.aborted) return;
          if (!loaded) return controller.close();
          // The expected segment has left the window: the next one starts at its first byte.
          if (loaded.reached !== index) offset = 0;
          index = loaded.reached;
          const { bytes } = loaded;
          // A failure is reported when the segment is read.
          if (offset === 0) load(index + 1).catch(() => {});
          const chunk = bytes.subarray(offset, offset + CHUNK_BYTES);
          offset += chunk.length;
          if (offset >= bytes.length) {
            index++;
            offset = 0;
          }
          if (chunk.length > 0) return controller.enqueue(chunk);
        }
      },
      cancel(reason) {
        closed.abort(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
