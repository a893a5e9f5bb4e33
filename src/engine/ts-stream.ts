/** Reads a transport stream chunk by chunk. */
export interface ChunkReader {
  /** The next chunk, waited for; undefined at the end. Not asked again before it has answered. */
  next(): Promise<Uint8Array | undefined>;
  /** Nobody will ask any more; called at least once. */
  close(): void;
}

/** How often a player that waits for its first data hears that we are still here. */
export const KEEP_ALIVE_MS = 500;

/**
 * What a reader gives as one stream, driven by the pull of who takes it: it is asked for a chunk whenever one is wanted,
 * never before. The stream ends when `ended` fires; `touched` is called at each pull.
 */
export function transportStream(
  reader: ChunkReader,
  ended: AbortSignal,
  touched: () => void,
): ReadableStream<Uint8Array> {
  let isOver = false;
  /** Whether it was not over yet. A session outlives many connections: nothing of them hangs on its signal afterwards. */
  const finish = (): boolean => {
    if (isOver) return false;
    isOver = true;
    ended.removeEventListener("abort", stop);
    reader.close();
    return true;
  };
  let stop = () => {};
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stop = () => {
          if (finish()) controller.close();
        };
        ended.addEventListener("abort", stop);
      },
      async pull(controller) {
        touched();
        try {
          const chunk = await reader.next();
          if (isOver) return;
          if (chunk) controller.enqueue(chunk);
          else if (finish()) controller.close();
        } catch (thrown) {
          if (finish()) controller.error(thrown);
        }
      },
      cancel() {
        finish();
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * Seven null packets (ISO 13818-1 2.4.3.2, PID 0x1FFF): one usual network packet of a transport stream. CHOICE(null-packets):
 * they go out only while the very first data is not there, which is 8 s after the request at the earliest, so that no
 * player mistakes them for the content.
 */
export function nullPackets(): Uint8Array {
  const packets = new Uint8Array(7 * 188).fill(0xff);
  for (let at = 0; at < packets.length; at += 188) packets.set([0x47, 0x1f, 0xff, 0x10], at);
  return packets;
}
