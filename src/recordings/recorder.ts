import { sleep } from "../async/sleep.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import { MIN_FREE_BYTES } from "../base/free-disk.ts";
import type { Log } from "../base/log.ts";
import type { CatchUp } from "../catch-up/catch-up-contract.ts";
import { chunksOf, isStuffing } from "../catch-up/stream-chunks.ts";
import type { Items } from "../library/contract.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { Clock, Files } from "../runtime/contract.ts";
import { JoinedStream } from "./joined-stream.ts";
import type { StoredRecording } from "./recording-record.ts";

/** Dependencies of {@link recordStream}. */
export interface RecorderDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly log: Log;
  /** Bytes that recordings may still use in all. */
  freeBytes(): number;
}

/** How a stream is recorded. */
interface RecordOptions {
  readonly path: string;
  /** Opens the channel. `bytes`: what the file has already. */
  readonly open: (signal: AbortSignal, bytes: number) => Promise<OpenedStream>;
  /** Returns true if the recording has ended when its stream ends. */
  readonly isOver: () => boolean;
  /** Ends the recording. */
  readonly signal: AbortSignal;
  /** Called with the size of the file after each write, and with the present problem. */
  readonly progress: (bytes: number, problem: string | null) => void;
}

/** A transport stream to record. */
export interface OpenedStream {
  readonly stream: ReadableStream<Uint8Array>;
  /** True if its first byte follows the last one of the file. */
  readonly isContinuation: boolean;
}

/** A channel that cannot be played is tried again after this time. */
const RETRY_MS = 5_000;
const NOTHING = new Uint8Array(0);
/** The file is synced, and the disk is checked, each time this much was written. */
const SYNC_BYTES = 16 * 1024 * 1024;

/**
 * Appends a channel to a file until the signal fires. If the channel fails, it is opened again, and the times of the
 * file continue. Resolves to the reason if the recording ended early: the limit, or the disk.
 */
export async function recordStream(
  dependencies: RecorderDependencies,
  { path, open, signal, isOver, progress }: RecordOptions,
): Promise<string | null> {
  const { clock, files, log } = dependencies;
  const size = (await files.stat(path))?.size ?? 0;
  const file = await files.open(path);
  // A file that was cut by a crash continues with a whole packet.
  const writer = { at: size - (size % TS_PACKET_BYTES), synced: size };
  // After a restart the number differs from the last one too.
  let versions: number = clock.unixSeconds();
  try {
    while (!signal.aborted) {
      let problem = "the channel has ended";
      try {
        const { stream, isContinuation } = await open(signal, writer.at);
        const joined = await JoinedStream.after(file, isContinuation ? 0 : writer.at, ++versions);
        for await (const bytes of chunksOf(stream, signal)) {
          const chunk = isStuffing(bytes) ? NOTHING : joined.push(bytes);
          if (chunk.length === 0) continue;
          const limit = await limitReached(dependencies, path, writer);
          if (limit !== undefined) return limit;
          await file.write(writer.at, chunk);
          writer.at += chunk.length;
          progress(writer.at, null);
          if (writer.at - writer.synced < SYNC_BYTES) continue;
          await file.sync();
          writer.synced = writer.at;
        }
      } catch (error) {
        problem = messageOf(error);
        if (error instanceof SluiceError && error.code === "disk_full") return "the disk is full";
      }
      if (signal.aborted || isOver()) break;
      log.debug("the recorded channel is opened again", { reason: problem });
      progress(writer.at, problem);
      await sleep(clock, RETRY_MS, signal);
    }
    return null;
  } finally {
    await file.sync().catch(() => {});
    await file.close();
  }
}

async function limitReached(
  { files, freeBytes }: RecorderDependencies,
  path: string,
  { at, synced }: { readonly at: number; readonly synced: number },
): Promise<string | undefined> {
  if (freeBytes() <= 0) return "the limit of all recordings is reached (--recordings-limit)";
  if (at !== synced) return undefined;
  const free = await files.freeBytes(path);
  return free !== undefined && free < MIN_FREE_BYTES ? "the disk is almost full" : undefined;
}

/** What is kept of the time of a recording: when that begins, and its stream from an offset on. */
interface KeptSource {
  readonly fromMs: number;
  from(bytes: number): Promise<ReadableStream<Uint8Array>>;
}

/** Dependencies of {@link keptMedia}. */
interface KeptDependencies {
  readonly items: Pick<Items, "get">;
  /** If absent, catch-up is off. */
  readonly catchUp: Pick<CatchUp, "isKept" | "open" | "follow"> | undefined;
}

/** Returns what is kept of the time of a recording; undefined if nothing is. */
export async function keptMedia(
  { catchUp, items }: KeptDependencies,
  { itemId, start, stop }: Pick<StoredRecording, "itemId" | "start" | "stop">,
): Promise<KeptSource | undefined> {
  const item = await items.get(itemId);
  if (!catchUp || !item || !catchUp.isKept(item)) return undefined;
  const span = { startMs: 1000 * start, endMs: 1000 * stop };
  const media = await catchUp.open(item, span);
  if (!media) return undefined;
  return {
    fromMs: media.segments[0]!.startMs,
    from: async (bytes) => withoutFirst(catchUp.follow(item, span), bytes),
  };
}

/** Skips the first bytes of a stream, which are in the file already. */
function withoutFirst(stream: ReadableStream<Uint8Array>, bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return stream.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        const skipped = Math.min(left, chunk.length);
        left -= skipped;
        if (skipped < chunk.length) controller.enqueue(chunk.subarray(skipped));
      },
    }),
  );
}
