import { sleep } from "../async/sleep.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Item, Items } from "../library/contract.ts";
import { ChannelWriter, type WriterDependencies } from "./channel-writer.ts";
import { chunksOf } from "./stream-chunks.ts";

/** Plays the channel of an item as one transport stream. Rejects if no source of it delivers. */
export type OpenChannel = (
  item: Item,
  options: { readonly allowPrivateUrls: boolean },
  signal: AbortSignal,
) => Promise<ReadableStream<Uint8Array>>;

/** Dependencies of {@link ChannelKeeper}. */
export interface KeeperDependencies extends WriterDependencies {
  readonly items: Pick<Items, "get" | "query">;
  readonly open: OpenChannel;
  readonly log: Log;
}

/** A channel that cannot be played, or has no space on the disk, is tried again after this time; each failure in a row doubles it. */
const RETRY_MS = 5_000;
const MAX_RETRY_MS = 5 * 60_000;

/** What is kept of a channel. */
export interface KeptRecord {
  readonly channel: string;
  readonly itemId: number;
  readonly title: string;
  readonly allowPrivateUrls: boolean;
}

/** Plays a channel in the background and writes it, until it is closed. A channel that fails is opened again. */
export class ChannelKeeper {
  readonly record: KeptRecord;
  readonly #parts: KeeperDependencies;
  readonly #writer: ChannelWriter;
  readonly #abort = new AbortController();
  readonly #ended: Promise<void>;
  #problem: string | null = null;

  constructor(parts: KeeperDependencies, record: KeptRecord) {
    this.#parts = parts;
    this.record = record;
    this.#writer = new ChannelWriter(parts, record.channel);
    this.#ended = this.#run().catch((error: unknown) => {
      this.#problem = messageOf(error);
      parts.log.error("a channel is not kept any more", { channel: record.title, reason: messageOf(error) });
    });
  }

  /** Why nothing is kept at the moment; null if there is no problem. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Writes what has arrived, if that is due. */
  async wake(): Promise<void> {
    await this.#writer.wake().catch((error: unknown) => {
      this.#problem = messageOf(error);
    });
  }

  /** Resolves when everything that has arrived is written. */
  close(): Promise<void> {
    this.#abort.abort();
    return this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#abort;
    await this.#writer.continueLast();
    let failures = 0;
    while (!signal.aborted) {
      const isFirst = this.#problem === null;
      const bytes = await this.#keep().catch((error: unknown) => {
        this.#problem = messageOf(error);
        return 0;
      });
      if (signal.aborted) return;
      if (isFirst)
        log.warn("a channel is not kept", { channel: this.record.title, reason: this.#problem ?? "" });
      failures = bytes > 0 ? 0 : failures + 1;
      await sleep(clock, Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** failures), signal);
    }
  }

  /** Writes the channel until it fails. Resolves to the number of bytes that arrived. */
  async #keep(): Promise<number> {
    const { signal } = this.#abort;
    const writer = this.#writer;
    const item = await this.#item();
    const stream = await this.#parts.open(item, this.record, signal);
    let bytes = 0;
    writer.begin();
    try {
      for await (const chunk of chunksOf(stream, signal)) {
        const problem = await writer.push(chunk);
        bytes += chunk.length;
        this.#problem = problem ?? null;
        if (problem !== undefined) return 0;
      }
      this.#problem = "the channel has ended";
    } catch (error) {
      this.#problem = messageOf(error);
    } finally {
      await writer.finish();
    }
    return bytes;
  }

  /** The item that the user chose, or another source of the channel if it is gone. */
  async #item(): Promise<Item> {
    const { items } = this.#parts;
    const { itemId, channel } = this.record;
    const chosen = await items.get(itemId);
    if (chosen && chosen.deletedAt === null) return chosen;
    const [other] = (await items.query({ hash: channel, isEnabled: true, limit: 1 })).items;
    if (other) return other;
    throw new SluiceError("unknown_item", "the channel is not in the playlist any more");
  }
}
