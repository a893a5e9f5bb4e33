import { equalBytes, toHex } from "../../base/bytes.ts";
import { householdOf } from "../../base/network.ts";
import { after, type Instant } from "../../base/time.ts";
import type { DhtItem } from "../../wire/dht/krpc.ts";
import { compareDistance } from "../../wire/dht/node-id.ts";
import { ITEM_MS, MAX_ITEMS, MAX_ITEMS_PER_ADDRESS } from "./limits.ts";

interface StoredItem {
  readonly target: Uint8Array;
  readonly item: DhtItem;
  readonly putBy: string;
  readonly until: Instant;
}

/** Why a `put` is refused: the error code and message of BEP 44. */
export interface PutRefusal {
  readonly code: number;
  readonly message: string;
}

/** Items stored for other nodes (BEP 44): for two hours, few per address; beyond the limit only the nearest ones. The
 * caller has verified their signatures. */
export class ItemStore {
  readonly #items = new Map<string, StoredItem>();

  get size(): number {
    return this.#items.size;
  }

  get(target: Uint8Array, now: Instant): DhtItem | undefined {
    const stored = this.#items.get(toHex(target));
    return stored && stored.until > now ? stored.item : undefined;
  }

  /** Stores an item; returns the reason if it is refused. `ownId` determines which items are near. */
  put(
    { target, item, cas }: { target: Uint8Array; item: DhtItem; cas: number | undefined },
    host: string,
    ownId: Uint8Array,
    now: Instant,
  ): PutRefusal | undefined {
    const key = toHex(target);
    const old = this.#items.get(key);
    const refusal = old && old.until > now ? conflict(old.item, item, cas) : undefined;
    if (refusal) return refusal;
    const putBy = householdOf(host);
    if (!old && !this.#makeRoom(target, putBy, ownId, now))
      return { code: 202, message: "item limit reached" };
    this.#items.delete(key);
    this.#items.set(key, { target, item, putBy, until: after(now, ITEM_MS) });
    return undefined;
  }

  /** Drops expired items. */
  expire(now: Instant): void {
    for (const [key, { until }] of this.#items) {
      // Sorted by expiry.
      if (until > now) break;
      this.#items.delete(key);
    }
  }

  #makeRoom(target: Uint8Array, putBy: string, ownId: Uint8Array, now: Instant): boolean {
    this.expire(now);
    let own = 0;
    for (const stored of this.#items.values()) if (stored.putBy === putBy) own++;
    if (own >= MAX_ITEMS_PER_ADDRESS) return false;
    if (this.#items.size < MAX_ITEMS) return true;
    let farthest: StoredItem | undefined;
    for (const stored of this.#items.values())
      if (!farthest || compareDistance(ownId, stored.target, farthest.target) > 0) farthest = stored;
    if (!farthest || compareDistance(ownId, target, farthest.target) >= 0) return false;
    this.#items.delete(toHex(farthest.target));
    return true;
  }
}

/** Checks the sequence number of a mutable item, and `cas` if present (BEP 44). */
function conflict(old: DhtItem, update: DhtItem, cas: number | undefined): PutRefusal | undefined {
  if (!old.signed || !update.signed) return undefined;
  if (cas !== undefined && cas !== old.signed.sequence)
    return { code: 301, message: "the CAS sequence number does not match" };
  const isOlder = update.signed.sequence < old.signed.sequence;
  const isOther = update.signed.sequence === old.signed.sequence && !equalBytes(old.value, update.value);
  return isOlder || isOther ? { code: 302, message: "the sequence number is not newer" } : undefined;
}
