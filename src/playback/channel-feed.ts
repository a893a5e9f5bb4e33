import { SluiceError } from "../base/errors.ts";
import type { Instant } from "../base/time.ts";
import type { SwarmFigures } from "../protocol/swarm/contract.ts";
import { TsEntry } from "../remux/ts-join.ts";
import { SourceWatch } from "./source-watch.ts";

/** A source of a channel. */
export interface ChannelSource {
  /** For the log. */
  readonly name: string;
  /** Opens it as one transport stream, with all sound as AAC if `convertsSound`. Rejects if it cannot be played. */
  open(signal: AbortSignal, convertsSound: boolean): Promise<ReadableStream<Uint8Array>>;
  /** The figures of its content while it is open. */
  figures?(): SwarmFigures | undefined;
  /** Whether it cannot be reached any more. */
  isUnreachable?(): boolean;
}

/** What a feed delivered; `packets` is undefined if it has ended. */
export interface Delivery {
  readonly feed: Feed;
  readonly packets?: Uint8Array<ArrayBuffer> | undefined;
  readonly problem?: unknown;
}

/** The packets of one source from its first key frame on. One delivery is read ahead. */
export class Feed {
  readonly index: number;
  readonly name: string;
  /** See {@link ChannelSource}. */
  readonly figures: () => SwarmFigures | undefined;
  readonly isUnreachable: () => boolean;
  readonly openedAt: Instant;
  entry: TsEntry;
  /** True once its times follow those of the feed before. */
  isJoined = false;
  /** Whether it plays well. */
  readonly watch = new SourceWatch();
  readonly #over = new AbortController();
  readonly #reader: Promise<ReadableStreamDefaultReader<Uint8Array>>;
  #reading = false;
  #ready: Delivery | undefined;
  #listener: (delivery: Delivery) => void = () => {};

  constructor(
    index: number,
    source: ChannelSource,
    version: number,
    openedAt: Instant,
    convertsSound = false,
  ) {
    this.index = index;
    this.name = source.name;
    this.figures = () => source.figures?.();
    this.isUnreachable = () => source.isUnreachable?.() ?? false;
    this.entry = new TsEntry(version);
    this.openedAt = openedAt;
    this.#reader = source.open(this.#over.signal, convertsSound).then((stream) => {
      const reader = stream.getReader();
      if (this.#over.signal.aborted) void reader.cancel().catch(() => {});
      return reader;
    });
    // Reported by the first read.
    this.#reader.catch(() => {});
  }

  /** Calls `listener` when the next delivery is there, and again until `take`; a later call replaces the listener. */
  deliver(listener: (delivery: Delivery) => void): void {
    this.#listener = listener;
    if (this.#ready) listener(this.#ready);
    if (this.#ready || this.#reading) return;
    this.#reading = true;
    void this.#read().then((delivery) => {
      this.#reading = false;
      this.#ready = delivery;
      this.#listener(delivery);
    });
  }

  /** Joins again, at the next key frame in `rest` or after it. `version`: see {@link TsEntry}. */
  restart(version: number, rest?: Uint8Array): void {
    this.entry = new TsEntry(version, this.entry);
    this.isJoined = false;
    const packets = rest && this.entry.pushPackets(rest);
    this.#ready = packets && packets.length > 0 ? { feed: this, packets } : undefined;
  }

  /** Consumes the delivery. */
  take(): void {
    this.#ready = undefined;
  }

  close(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(new SluiceError("cancelled", "the channel plays another source"));
    void this.#reader.then((reader) => reader.cancel()).catch(() => {});
  }

  async #read(): Promise<Delivery> {
    try {
      const reader = await this.#reader;
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#over.signal.aborted) return { feed: this };
        const packets = this.entry.push(value);
        if (packets.length > 0) return { feed: this, packets };
      }
    } catch (problem) {
      return { feed: this, problem };
    }
  }
}
