import * as v from "valibot";
import { SerialQueue } from "../async/serial-queue.ts";
import { MIN_FREE_BYTES } from "../base/free-disk.ts";
import type { Log } from "../base/log.ts";
import { TS_PACKET_BYTES } from "../media/ts-packet.ts";
import type { Files, KeyValueStore } from "../runtime/contract.ts";

/** Dependencies of {@link KeptBlocks}. */
export interface BlocksDependencies {
  readonly store: KeyValueStore;
  readonly files: Files;
  /** The folder of the library, which need not exist. */
  readonly folder: string;
  /** Limit of all blocks together, in bytes. */
  readonly limitBytes: number;
  readonly log: Log;
}

/** A point of a block at which playback can start: the tables, then a key frame. */
export interface BlockCut {
  /** Offset in the file, in bytes. */
  readonly at: number;
  readonly timeMs: number;
  /** Decode time of the key frame in 90 kHz ticks; undefined if it could not be read. */
  readonly ticks: number | undefined;
  /** True if it does not continue what is before it. */
  readonly isDiscontinuous: boolean;
}

/** A file with about a minute of a channel. */
export interface Block {
  readonly channel: string;
  /** Identifies the block within its channel. */
  readonly startMs: number;
  endMs: number;
  /** Written bytes. */
  bytes: number;
  /** The cuts of a block that is being written; those of other blocks are in the store. */
  cuts: BlockCut[] | undefined;
  /** Nothing more is written. */
  isClosed: boolean;
}

const PREFIX = "catch-up/block/";
/** Blocks that are removed by one commit. */
const MAX_REMOVED = 200;
/** Digits of the time in a key, so that the order of the keys is the order of time. */
const TIME_DIGITS = 14;

const amount = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** `cuts`: four numbers each: packets before it, milliseconds after the start, ticks or -1, 1 if it is discontinuous. */
const storedBlock = v.object({
  end: amount,
  bytes: amount,
  cuts: v.array(v.pipe(v.number(), v.safeInteger(), v.minValue(-1))),
});

/**
 * The kept media of all channels: files of about a minute, and a record in the store for each of them. A record says how many bytes of its
 * file are valid, so that after a crash a file ends at the last record. The limit is never exceeded: the oldest block of any
 * channel is removed before the bytes that would exceed it are written.
 */
export class KeptBlocks {
  readonly #parts: BlocksDependencies;
  /** By channel, oldest first. */
  readonly #channels = new Map<string, Block[]>();
  readonly #dirty = new Set<Block>();
  readonly #queue = new SerialQueue();
  readonly #listeners = new Set<() => void>();
  #usedBytes = 0;
  #freeBytes: number | undefined;

  private constructor(parts: BlocksDependencies) {
    this.#parts = parts;
  }

  /** Reads the records, and removes files without one. */
  static async load(parts: BlocksDependencies): Promise<KeptBlocks> {
    const blocks = new KeptBlocks(parts);
    for await (const [key, value] of parts.store.list(PREFIX)) {
      const [channel = "", start = ""] = key.slice(PREFIX.length).split("/");
      const read = v.safeParse(storedBlock, value);
      if (!read.success || !/^\d{14}$/.test(start) || !/^[0-9a-f]{40}$/.test(channel)) {
        parts.log.error("a record of catch-up cannot be read", { key });
        continue;
      }
      const { end: endMs, bytes } = read.output;
      blocks
        .#list(channel)
        .push({ channel, startMs: Number(start), endMs, bytes, cuts: undefined, isClosed: true });
    }
    await blocks.#checkFiles();
    return blocks;
  }

  /** Bytes of all files. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** The blocks of a channel, oldest first. */
  of(channel: string): readonly Block[] {
    return this.#channels.get(channel) ?? [];
  }

  path({ channel, startMs }: Pick<Block, "channel" | "startMs">): string {
    return `${this.#parts.folder}/catch-up/${channel}/${startMs}.ts`;
  }

  /** Adds an empty block. Its start must be after that of the last one of the channel. */
  add(channel: string, startMs: number): Block {
    const block: Block = { channel, startMs, endMs: startMs, bytes: 0, cuts: [], isClosed: false };
    this.#list(channel).push(block);
    return block;
  }

  /**
   * Removes the oldest blocks until `bytes` more fit. Resolves to a problem if they do not: nothing is left to remove but the blocks that
   * are being written.
   */
  async makeRoom(bytes: number): Promise<string | undefined> {
    if (this.#missing(bytes) <= 0) return undefined;
    return this.#queue.run(async () => {
      while (this.#missing(bytes) > 0) {
        const removable = this.#oldest();
        if (removable.length === 0)
          return this.#usedBytes + bytes > this.#parts.limitBytes
            ? "the limit of catch-up is too small (--catch-up-limit)"
            : "the disk is almost full";
        const some: Block[] = [];
        let freed = 0;
        for (const block of removable) {
          if (freed >= this.#missing(bytes) || some.length >= MAX_REMOVED) break;
          some.push(block);
          freed += block.bytes;
        }
        await this.#remove(some);
        if (this.#freeBytes !== undefined) this.#freeBytes += freed;
      }
      return undefined;
    });
  }

  /** Counts bytes that were written to the end of a block, which now ends at `endMs`. */
  wrote(block: Block, bytes: number, endMs: number): void {
    block.bytes += bytes;
    // The monotonic clock has fractions, records have whole milliseconds.
    block.endMs = Math.max(block.endMs, Math.round(endMs));
    this.#usedBytes += bytes;
    if (this.#freeBytes !== undefined) this.#freeBytes -= bytes;
    this.#dirty.add(block);
    this.#notify();
  }

  /** Ends a block. After the next commit, its cuts are read from the store. */
  close(block: Block): void {
    block.isClosed = true;
    this.#dirty.add(block);
    this.#notify();
  }

  /** Stores what was written since the last commit; durable when it resolves. */
  async commit(): Promise<void> {
    if (this.#dirty.size === 0) return;
    await this.#queue.run(async () => {
      const dirty = [...this.#dirty];
      const set = dirty.map((block) => [keyOf(block), recordOf(block)] as const);
      const closed = dirty.filter(({ isClosed }) => isClosed);
      this.#dirty.clear();
      try {
        await this.#parts.store.commit({ set });
      } catch (error) {
        for (const block of dirty) this.#dirty.add(block);
        throw error;
      }
      for (const block of closed) block.cuts = undefined;
    });
  }

  /** Removes the blocks that ended before `beforeMs`, and looks how much space the disk has left. */
  async expire(beforeMs: number): Promise<void> {
    this.#freeBytes = await this.#parts.files.freeBytes(this.#parts.folder);
    await this.#queue.run(async () => {
      const old = this.#oldest().filter(({ endMs }) => endMs < beforeMs);
      for (let at = 0; at < old.length; at += MAX_REMOVED)
        await this.#remove(old.slice(at, at + MAX_REMOVED));
    });
  }

  /** Removes all blocks of a channel; none of them may be written any more. */
  async clear(channel: string): Promise<void> {
    await this.#queue.run(async () => {
      const all = [...this.of(channel)];
      for (let at = 0; at < all.length; at += MAX_REMOVED)
        await this.#remove(all.slice(at, at + MAX_REMOVED));
      this.#channels.delete(channel);
      await this.#parts.files.remove(`${this.#parts.folder}/catch-up/${channel}`);
    });
    this.#notify();
  }

  /** Returns the cuts of a block, oldest first; empty if it was removed. */
  async cuts(block: Block): Promise<readonly BlockCut[]> {
    if (block.cuts) return block.cuts;
    const read = v.safeParse(storedBlock, await this.#parts.store.get(keyOf(block)));
    if (!read.success) return [];
    const { cuts } = read.output;
    return Array.from({ length: Math.floor(cuts.length / 4) }, (_, i) => {
      const [packets, ms, ticks, isDiscontinuous] = cuts.slice(4 * i, 4 * i + 4) as [
        number,
        number,
        number,
        number,
      ];
      return {
        at: packets * TS_PACKET_BYTES,
        timeMs: block.startMs + ms,
        ticks: ticks < 0 ? undefined : ticks,
        isDiscontinuous: isDiscontinuous === 1,
      };
    });
  }

  /** Calls `changed` once, at the next change of any block. The returned function cancels it. */
  onChange(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** Bytes that must be removed before `bytes` more may be written. */
  #missing(bytes: number): number {
    const { limitBytes } = this.#parts;
    const overDisk = this.#freeBytes === undefined ? 0 : bytes + MIN_FREE_BYTES - this.#freeBytes;
    return Math.max(this.#usedBytes + bytes - limitBytes, overDisk);
  }

  /** The blocks that may be removed, oldest first. */
  #oldest(): Block[] {
    return [...this.#channels.values()]
      .flat()
      .filter(({ cuts }) => cuts === undefined)
      .sort((a, b) => a.startMs - b.startMs);
  }

  /** Removes the records first: a file without a record is removed at the next start. */
  async #remove(blocks: readonly Block[]): Promise<void> {
    if (blocks.length === 0) return;
    await this.#parts.store.commit({ delete: blocks.map(keyOf) });
    const gone = new Set(blocks);
    for (const channel of new Set(blocks.map((block) => block.channel)))
      this.#channels.set(
        channel,
        this.of(channel).filter((block) => !gone.has(block)),
      );
    for (const block of blocks) {
      await this.#parts.files.remove(this.path(block));
      this.#usedBytes -= block.bytes;
    }
  }

  /** Removes files without a record. After a crash, the last file of a channel can be longer or shorter than its record says. */
  async #checkFiles(): Promise<void> {
    const { files, folder } = this.#parts;
    for (const channel of await files.list(`${folder}/catch-up`)) {
      const names = new Set(this.of(channel).map(({ startMs }) => `${startMs}.ts`));
      for (const name of await files.list(`${folder}/catch-up/${channel}`))
        if (!names.has(name)) await files.remove(`${folder}/catch-up/${channel}/${name}`);
    }
    for (const list of this.#channels.values()) {
      for (const block of list) this.#usedBytes += block.bytes;
      const last = list.at(-1);
      const facts = last && (await files.stat(this.path(last)));
      if (last && (facts?.size ?? 0) < last.bytes) await this.#cutShort(last, facts?.size ?? 0);
      else if (last && facts && facts.size > last.bytes) await this.#truncate(last);
    }
  }

  /** After a power failure, a file can be shorter than its record says. */
  async #cutShort(block: Block, size: number): Promise<void> {
    this.#parts.log.warn("the last minute of a channel is incomplete after a crash", {
      channel: block.channel,
    });
    const kept = (await this.cuts(block)).filter(({ at }) => at < size);
    this.#usedBytes -= block.bytes;
    if (kept.length === 0) {
      block.bytes = 0;
      await this.#remove([block]);
      return;
    }
    block.bytes = size - (size % TS_PACKET_BYTES);
    this.#usedBytes += block.bytes;
    block.endMs = kept.at(-1)!.timeMs;
    block.cuts = [...kept];
    this.close(block);
    await this.commit();
  }

  async #truncate(block: Block): Promise<void> {
    const file = await this.#parts.files.open(this.path(block));
    await file.truncate(block.bytes).finally(() => file.close());
  }

  #list(channel: string): Block[] {
    const there = this.#channels.get(channel);
    if (there) return there;
    const made: Block[] = [];
    this.#channels.set(channel, made);
    return made;
  }

  #notify(): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

function keyOf({ channel, startMs }: Block): string {
  return `${PREFIX}${channel}/${String(startMs).padStart(TIME_DIGITS, "0")}`;
}

function recordOf({ startMs, endMs, bytes, cuts = [] }: Block): v.InferOutput<typeof storedBlock> {
  return {
    end: endMs,
    bytes,
    cuts: cuts.flatMap(({ at, timeMs, ticks, isDiscontinuous }) => [
      at / TS_PACKET_BYTES,
      timeMs - startMs,
      ticks ?? -1,
      isDiscontinuous ? 1 : 0,
    ]),
  };
}
