import * as v from "valibot";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ByteRange } from "../base/range.ts";
import { after } from "../base/time.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import type { Item, Items } from "../library/contract.ts";
import type { Clock, Files, KeyValueStore } from "../runtime/contract.ts";
import type { CatchUp, KeptChannel, KeptMedia, KeptSegment, TimeSpan } from "./catch-up-contract.ts";
import { ChannelKeeper, type KeptRecord, type OpenChannel } from "./channel-keeper.ts";
import { KeptBlocks } from "./kept-blocks.ts";
import {
  followStream,
  LATE_MS,
  manifestOf,
  type ReaderDependencies,
  segmentStream,
  segmentsOf,
  spansOf,
  streamOf,
} from "./kept-media.ts";

/** Dependencies of {@link createCatchUp}. */
export interface CatchUpDependencies {
  readonly store: KeyValueStore;
  readonly clock: Clock;
  readonly files: Files;
  /** The folder of the library, which need not exist. */
  readonly folder: string;
  readonly items: Pick<Items, "get" | "query" | "figures">;
  /** How long media is kept. */
  readonly windowMs: number;
  /** Limit of all kept media, in bytes. */
  readonly limitBytes: number;
  readonly open: OpenChannel;
  /** UNIX time in milliseconds. */
  readonly unixMs: () => number;
  readonly log: Log;
}

const PREFIX = "catch-up/channel/";
/** Each of them is received all the time. */
const MAX_CHANNELS = 32;
const MAX_TEXT = 300;
/** What was written is stored at this interval at most. */
const COMMIT_MS = 500;
/** Programmes that are remembered while players seek in them. */
const MAX_OPENED = 64;
/** Old media is removed at this interval. */
const EXPIRE_MS = 10_000;

const storedChannel = v.object({
  itemId: v.pipe(v.number(), v.safeInteger()),
  title: v.pipe(v.string(), v.maxLength(MAX_TEXT)),
  allowPrivateUrls: v.boolean(),
});

/** Opens the kept media, and continues to keep the stored channels. */
export async function createCatchUp(
  dependencies: CatchUpDependencies,
): Promise<CatchUp & { close(): Promise<void> }> {
  const { store, log } = dependencies;
  const blocks = await KeptBlocks.load(dependencies);
  const records: KeptRecord[] = [];
  for await (const [key, value] of store.list(PREFIX)) {
    const read = v.safeParse(storedChannel, value);
    if (read.success) records.push({ ...read.output, channel: key.slice(PREFIX.length) });
    else log.error("a record of catch-up cannot be read", { key });
  }
  return new FileCatchUp(dependencies, blocks, records);
}

class FileCatchUp implements CatchUp {
  readonly #parts: CatchUpDependencies;
  readonly #reader: ReaderDependencies;
  readonly #keepers = new Map<string, ChannelKeeper>();
  /** By channel and time. If the oldest media is removed while it is played, the offsets of the rest stay. */
  readonly #opened = new Map<string, KeptMedia>();
  #cancelTick: () => void = () => {};
  #expiresAt = 0;
  #isClosed = false;

  constructor(parts: CatchUpDependencies, blocks: KeptBlocks, records: readonly KeptRecord[]) {
    this.#parts = parts;
    this.#reader = { ...parts, blocks };
    for (const record of records) this.#keep(record);
    this.#tick();
  }

  get windowMs(): number {
    return this.#parts.windowMs;
  }

  list(item?: Item): KeptChannel[] {
    const { blocks } = this.#reader;
    const keepers = [...this.#keepers.values()];
    const listed = item ? keepers.filter(({ record }) => record.channel === this.#channelOf(item)) : keepers;
    return listed.map(({ record, problem }) => {
      const kept = blocks.of(record.channel);
      return {
        channel: record.channel,
        itemId: record.itemId,
        title: record.title,
        bytes: kept.reduce((sum, { bytes }) => sum + bytes, 0),
        spans: spansOf(kept, { startMs: 0, endMs: Number.POSITIVE_INFINITY }),
        problem,
      };
    });
  }

  async add(item: Item, { allowPrivateUrls }: { readonly allowPrivateUrls: boolean }): Promise<void> {
    const channel = this.#channelOf(item);
    if (this.#keepers.has(channel)) return;
    if (this.#keepers.size >= MAX_CHANNELS)
      throw new SluiceError("too_many", `the limit of ${MAX_CHANNELS} channels with catch-up is reached`);
    const title = (item.displayTitle || item.title).slice(0, MAX_TEXT);
    const stored = { itemId: item.id, title, allowPrivateUrls };
    await this.#parts.store.commit({ set: [[PREFIX + channel, stored]] });
    if (!this.#keepers.has(channel)) this.#keep({ ...stored, channel });
  }

  async remove(item: Item): Promise<void> {
    const channel = this.#channelOf(item);
    const keeper = this.#keepers.get(channel);
    if (!keeper) throw new SluiceError("unknown_item", "catch-up is not on for this channel");
    await this.#parts.store.commit({ delete: [PREFIX + channel] });
    this.#keepers.delete(channel);
    await keeper.close();
    this.#opened.clear();
    const { blocks } = this.#reader;
    await blocks.commit();
    await blocks.clear(channel);
  }

  isKept(item: Item): boolean {
    return this.#keepers.has(this.#channelOf(item));
  }

  spans(item: Item, span: TimeSpan): TimeSpan[] {
    return spansOf(this.#reader.blocks.of(this.#channelOf(item)), span);
  }

  async open(item: Item, span: TimeSpan): Promise<KeptMedia | undefined> {
    const channel = this.#channelOf(item);
    const key = `${channel} ${span.startMs} ${span.endMs}`;
    const opened = this.#opened.get(key);
    if (opened) return opened;
    const segments = await segmentsOf(this.#reader.blocks, channel, span);
    const isGrowing = this.#keepers.has(channel) && span.endMs > this.#parts.unixMs();
    if (segments.length === 0) return undefined;
    const media = {
      segments,
      isGrowing,
      bytes: segments.reduce((sum, { range }) => sum + range.end - range.start, 0),
      read: (range: ByteRange) => segmentStream(this.#reader, channel, segments, range),
      manifest: (uriOf: (segment: KeptSegment) => string) => manifestOf(segments, isGrowing, uriOf),
    };
    const isFinal = span.endMs + LATE_MS < this.#parts.unixMs();
    if (isFinal) this.#opened.set(key, media);
    trimOldest(this.#opened, MAX_OPENED);
    return media;
  }

  follow(item: Item, span: TimeSpan): ReadableStream<Uint8Array> {
    const channel = this.#channelOf(item);
    const isKept = () => !this.#isClosed && this.#keepers.has(channel);
    return followStream(this.#reader, channel, span, isKept);
  }

  file(item: Item, block: number, range: ByteRange): ReadableStream<Uint8Array> | undefined {
    const { blocks } = this.#reader;
    const found = blocks.of(this.#channelOf(item)).find(({ startMs }) => startMs === block);
    if (!found || range.start >= range.end || range.end > found.bytes) return undefined;
    let part: { path: string; range: typeof range } | undefined = { path: blocks.path(found), range };
    return streamOf(this.#parts.files, async () => {
      const next = part;
      part = undefined;
      return next;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTick();
    await Promise.all([...this.#keepers.values()].map((keeper) => keeper.close()));
    await this.#reader.blocks.commit();
  }

  #keep(record: KeptRecord): void {
    this.#keepers.set(record.channel, new ChannelKeeper({ ...this.#parts, ...this.#reader }, record));
  }

  #channelOf(item: Item): string {
    return this.#parts.items.figures(item).hash;
  }

  #tick(): void {
    const { clock, log } = this.#parts;
    this.#store()
      .catch((error: unknown) => log.error("kept media cannot be stored", { reason: messageOf(error) }))
      .finally(() => {
        if (this.#isClosed) return;
        this.#cancelTick = clock.at(after(clock.now(), COMMIT_MS), () => this.#tick());
      });
  }

  /** Stores what has arrived, and removes what is too old. */
  async #store(): Promise<void> {
    const { clock, windowMs, unixMs } = this.#parts;
    const { blocks } = this.#reader;
    await Promise.all([...this.#keepers.values()].map((keeper) => keeper.wake()));
    await blocks.commit();
    if (clock.now() < this.#expiresAt) return;
    this.#expiresAt = clock.now() + EXPIRE_MS;
    await blocks.expire(unixMs() - windowMs);
  }
}
