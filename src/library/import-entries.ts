import type { YieldIfDue } from "../async/event-loop.ts";
import { DecodeError, SluiceError } from "../base/errors.ts";
import { type M3uEntry, M3uReader } from "../media/m3u.ts";

/** Facts about a list that was read. */
interface ListFacts {
  /** Number of playable entries. */
  readonly count: number;
  /** Number of entries that cannot be played. */
  readonly leftOut: number;
  readonly guides: readonly string[];
}

/** Options of {@link readEntries}. */
export interface ListReadOptions<Made> {
  /** Converts an entry, with the attributes of the list; undefined if it cannot be played. */
  make(entry: M3uEntry, header: ReadonlyMap<string, string>): Made | undefined;
  readonly yieldIfDue: YieldIfDue;
  readonly signal: AbortSignal;
}

/**
 * Parses the blocks of a list and passes the converted entries of each block to `take`, in order. Rejects with
 * `not_a_playlist` if they are not a list or have too many entries; earlier entries have been passed on by then.
 */
export async function readEntries<Made>(
  blocks: Iterable<Uint8Array>,
  options: ListReadOptions<Made>,
  take: (made: readonly Made[]) => void | Promise<void>,
): Promise<ListFacts> {
  const reader = new M3uReader();
  let count = 0;
  let leftOut = 0;
  const pass = async (read: () => ReturnType<M3uReader["push"]>) => {
    options.signal.throwIfAborted();
    await options.yieldIfDue();
    const entries = withPlaylistErrors(read);
    refuseManifest(reader);
    const all: Made[] = [];
    for (const entry of entries) {
      const made = options.make(entry, reader.header.attributes);
      if (made !== undefined) all.push(made);
    }
    count += all.length;
    leftOut += entries.length - all.length;
    await take(all);
  };
  for (const block of blocks) await pass(() => reader.push(block));
  await pass(() => reader.end());
  return { count, leftOut: leftOut + reader.skipped, guides: reader.header.guides };
}

/** Throws `not_a_playlist` if the first bytes are not those of a list. `isWhole`: `head` is the whole list. */
export function checkHead(head: Uint8Array, isWhole: boolean): void {
  const reader = new M3uReader();
  withPlaylistErrors(() => reader.push(head));
  if (isWhole) withPlaylistErrors(() => reader.end());
  refuseManifest(reader);
}

/** Calls `read`; converts a `DecodeError` to `not_a_playlist`. */
export function withPlaylistErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("not_a_playlist", thrown.message, { cause: thrown });
  }
}

function refuseManifest({ kind }: M3uReader): void {
  if (kind === "hls")
    throw new SluiceError("not_a_playlist", "this is the manifest of a single stream; add it as an item");
}

/** Yields the blocks in order and releases the memory of each after it is read. */
export function* consume(blocks: Uint8Array[]): Generator<Uint8Array> {
  blocks.reverse();
  for (let block = blocks.pop(); block; block = blocks.pop()) yield block;
}
