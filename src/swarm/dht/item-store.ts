import { equalBytes, toHex } from "../../base/bytes.ts";
import { householdOf } from "../../base/network.ts";
import { after, type Instant } from "../../base/time.ts";
import { compareDistance } from "../../wire/dht-id.ts";
import type { DhtItem } from "../../wire/krpc.ts";
import { ITEM_MS, MAX_ITEMS, MAX_ITEMS_PER_ADDRESS } from "./limits.ts";

interface StoredItem {
  readonly target: Uint8Array;
  readonly item: DhtItem;
  readonly putBy: string;
  readonly until: Instant;
}

/** Why a `put` is refused: the code and the words of BEP 44. */
export interface PutRefusal {
  readonly code: number;
  readonly message: string;
}

/** The items that others have put here (BEP 44): for two hours, few of one address, the nearest to us where there is no room for all.
 * Signatures have been checked. */
export class ItemStore {
  readonly #items = new Map<string, StoredItem>();

  get size(): number {
    return this.#items.size;
  }

  get(target: Uint8Array, now: Instant): DhtItem | undefined {
    const stored = this.#items.get(toHex(target));
    return stored && stored.until > now ? stored.item : undefined;
  }

  /** Keeps an item; undefined where it is kept, or what is wrong with it. `ownId` says what is near to us. */
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
      return { code: 202, message: "no room for more items" };
    this.#items.delete(key);
    this.#items.set(key, { target, item, putBy, until: after(now, ITEM_MS) });
    return undefined;
  }

  /** Forgets those whose time is over. */
  expire(now: Instant): void {
    for (const [key, { until }] of this.#items) {
      // The oldest come first.
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

/** A mutable item replaces an older one only, and where the sender says which, only that (BEP 44). */
function conflict(old: DhtItem, fresh: DhtItem, cas: number | undefined): PutRefusal | undefined {
  if (!old.signed || !fresh.signed) return undefined;
  if (cas !== undefined && cas !== old.signed.sequence)
    return { code: 301, message: "the sequence number is another by now" };
  const isOlder = fresh.signed.sequence < old.signed.sequence;
  const isOther = fresh.signed.sequence === old.signed.sequence && !equalBytes(old.value, fresh.value);
  return isOlder || isOther ? { code: 302, message: "a newer item is here" } : undefined;
}
