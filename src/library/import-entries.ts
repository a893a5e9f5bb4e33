import { DecodeError, SluiceError } from "../base/errors.ts";
import { type M3uEntry, M3uReader } from "../media/m3u.ts";
import type { Breathe } from "./breathe.ts";

/** What there was in a list beside its entries. */
export interface ListFacts {
  /** Entries that can be played. */
  readonly count: number;
  /** Entries that cannot, whatever the reason. */
  readonly leftOut: number;
  readonly guides: readonly string[];
}

/** How a list is read. */
export interface ListReading<Made> {
  /** What an entry becomes; undefined where it cannot be played. */
  make(entry: M3uEntry): Made | undefined;
  readonly breathe: Breathe;
  readonly signal: AbortSignal;
}

/**
 * Reads the blocks of a list and hands on what its entries become, a block's at a time, in order: the same blocks have the
 * same entries each time. Rejects with `not_a_playlist` where they are none, or where there are too many entries: those
 * before have been handed on then.
 */
export async function readEntries<Made>(
  blocks: Iterable<Uint8Array>,
  reading: ListReading<Made>,
  take: (made: readonly Made[]) => void | Promise<void>,
): Promise<ListFacts> {
  const reader = new M3uReader();
  let count = 0;
  let leftOut = 0;
  const pass = async (read: () => ReturnType<M3uReader["push"]>) => {
    reading.signal.throwIfAborted();
    await reading.breathe();
    const entries = explained(read);
    if (reader.kind === "hls") throw notAList("the manifest of a single stream came: add it as an item");
    const all: Made[] = [];
    for (const entry of entries) {
      const made = reading.make(entry);
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

/** Reads the head of a list: rejects with `not_a_playlist` where it is none. */
export function checkHead(head: Uint8Array, isWhole: boolean): void {
  const reader = new M3uReader();
  explained(() => reader.push(head));
  if (isWhole) explained(() => reader.end());
  if (reader.kind === "hls") throw notAList("the manifest of a single stream came: add it as an item");
}

/** What `read` returns; what a reader throws becomes an error for people. */
export function explained<T>(read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    if (!(thrown instanceof DecodeError)) throw thrown;
    throw new SluiceError("not_a_playlist", thrown.message, { cause: thrown });
  }
}

function notAList(what: string): SluiceError {
  return new SluiceError("not_a_playlist", what);
}

/** The blocks in order, each let go once it has been read. */
export function* taken(blocks: Uint8Array[]): Generator<Uint8Array> {
  blocks.reverse();
  for (let block = blocks.pop(); block; block = blocks.pop()) yield block;
}
