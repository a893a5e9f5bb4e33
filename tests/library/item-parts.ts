import { createHash } from "node:crypto";
import type { Infohash, Sha1 } from "../../src/base/ids.ts";
import type { Log } from "../../src/base/log.ts";
import type { ItemContent, ItemDraft } from "../../src/library/contract.ts";
import type { ItemStore } from "../../src/library/item-sync.ts";
import { createItems } from "../../src/library/items.ts";
import { FakeClock } from "../engine/fake-clock.ts";
import { MapStore } from "./map-store.ts";

export const sha1: Sha1 = (bytes) => new Uint8Array(createHash("sha1").update(bytes).digest());

/** Items on a store in memory, with the recorded log. */
export interface ItemHouse {
  readonly store: MapStore;
  readonly clock: FakeClock;
  readonly warnings: string[];
  items: ItemStore;
  /** Simulates a restart. */
  reopen(): Promise<void>;
}

export async function itemHouse(): Promise<ItemHouse> {
  const store = new MapStore();
  const clock = new FakeClock();
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const log: Log = { error: warn, warn, info() {}, debug() {}, named: () => log };
  const open = () => createItems({ store, clock, log, sha1 });
  const house: ItemHouse = {
    store,
    clock,
    warnings,
    items: await open(),
    async reopen() {
      house.items = await open();
    },
  };
  return house;
}

export function swarmContent(number: number): ItemContent {
  const infohash = number.toString(16).padStart(40, "0") as Infohash;
  return { transport: "bt", contentId: null, infohash, magnet: null, url: null };
}

export function urlContent(url: string): ItemContent {
  return { transport: "hls", contentId: null, infohash: null, magnet: null, url };
}

/** The nth entry of an external playlist. */
export function listed(number: number, more: Partial<ItemDraft> = {}): ItemDraft {
  return {
    title: `Channel ${number}`,
    content: urlContent(`https://example.com/${number}.m3u8`),
    externalPlaylistId: 1,
    sourceKey: `key ${number}`,
    ...more,
  };
}
