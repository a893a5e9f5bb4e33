import * as v from "valibot";
import { followRecords } from "../async/records.ts";
import { SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KeyValueStore } from "../runtime/contract.ts";
import type { ChannelHealth } from "./health-contract.ts";

const PREFIX = "channel-order/";
const MAX_CHANNELS = 10_000;
/** Sources of a channel that can be put in order. */
export const MAX_ORDERED = 32;

const contents = v.pipe(v.array(v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/))), v.maxLength(MAX_ORDERED));

/** The orders in which the user wants the sources of channels to be tried, by the hash of the channel. */
export class SourceOrders {
  readonly #store: KeyValueStore;
  readonly #health: Pick<ChannelHealth, "get">;
  readonly #orders = new Map<string, readonly string[]>();

  private constructor(store: KeyValueStore, health: Pick<ChannelHealth, "get">) {
    this.#store = store;
    this.#health = health;
  }

  /** Loads the orders; invalid records are logged and skipped. */
  static async load(
    store: KeyValueStore,
    health: Pick<ChannelHealth, "get">,
    log: Log,
  ): Promise<SourceOrders> {
    const orders = new SourceOrders(store, health);
    for await (const [key, value] of store.list(PREFIX)) {
      const read = v.safeParse(contents, value);
      if (read.success) orders.#orders.set(key.slice(PREFIX.length), read.output);
      else log.warn("skipped an invalid order of a channel's sources", { key });
    }
    followRecords(store, PREFIX, (key, value) => {
      const read = v.safeParse(contents, value);
      if (read.success) orders.#orders.set(key.slice(PREFIX.length), read.output);
      else orders.#orders.delete(key.slice(PREFIX.length));
    });
    return orders;
  }

  /** The contents that the user put in order; empty if none. */
  pinned(channel: string): readonly string[] {
    return this.#orders.get(channel) ?? [];
  }

  /** Stores an order; an empty one removes it. Rejects with `too_many`. */
  async pin(channel: string, order: readonly string[]): Promise<void> {
    if (order.length > MAX_ORDERED)
      throw new SluiceError("too_many", `expected at most ${MAX_ORDERED} sources of a channel`);
    if (!this.#orders.has(channel) && order.length > 0 && this.#orders.size >= MAX_CHANNELS)
      throw new SluiceError("too_many", `the limit of ${MAX_CHANNELS} ordered channels is reached`);
    if (order.length === 0) {
      await this.#store.commit({ delete: [PREFIX + channel] });
      this.#orders.delete(channel);
      return;
    }
    await this.#store.commit({ set: [[PREFIX + channel, order]] });
    this.#orders.set(channel, order);
  }

  /** Sorts sources, the best first: those of the user's order, the others as they are, the dead ones last. */
  sorted<T>(channel: string, sources: readonly T[], contentOf: (source: T) => string): T[] {
    const pinned = this.pinned(channel);
    const rank = (source: T) => {
      const content = contentOf(source);
      const place = pinned.indexOf(content);
      if (place >= 0) return place;
      return this.#health.get(content)?.status === "dead" ? MAX_ORDERED + 1 : MAX_ORDERED;
    };
    const ranked = sources.map((source) => ({ source, rank: rank(source) }));
    return ranked.sort((a, b) => a.rank - b.rank).map(({ source }) => source);
  }
}
