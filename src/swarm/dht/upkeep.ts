import { after, type Instant } from "../../base/time.ts";
import { randomIdNear, sharedBits } from "../../wire/dht-id.ts";
import type { Answers } from "./answers.ts";
import type { DhtCore } from "./core.ts";
import type { Family, Newcomer } from "./family.ts";
import {
  FEW_NODES,
  FEW_NODES_LOOKUP_MS,
  NEWCOMERS_PER_ROUND,
  QUESTIONABLE_MS,
  REFRESH_MS,
  UPKEEP_MS,
} from "./limits.ts";
import type { Searches } from "./searches.ts";

/** What the table of one family is due. */
interface TableUpkeep {
  /** When our own neighbourhood was looked up last. */
  homeAt: Instant | undefined;
  /** When something was last looked up in each bucket. */
  readonly bucketsAt: Map<number, Instant>;
}

/** Keeps the tables whole: meets newcomers, asks the silent, looks up what nobody has looked up for long (BEP 5). */
export class Upkeep {
  readonly #core: DhtCore;
  readonly #searches: Searches;
  readonly #answers: Answers;
  readonly #tables = new Map<Family, TableUpkeep>();
  #nextAt: Instant | undefined;

  constructor(core: DhtCore, searches: Searches, answers: Answers) {
    this.#core = core;
    this.#searches = searches;
    this.#answers = answers;
  }

  /** Begins, or does what is due. */
  wake(now: Instant): void {
    if (this.#nextAt !== undefined && now < this.#nextAt) return;
    this.#nextAt = after(now, UPKEEP_MS);
    this.#answers.expire();
    for (const family of this.#core.reachable) {
      this.#meet(family);
      this.#askSilent(family);
      this.#lookUp(family, now);
    }
  }

  /** Somebody new was named: whoever knows nobody looks around at once. */
  named(): void {
    for (const family of this.#core.reachable)
      if (family.table.provenCount === 0) this.#lookUp(family, this.#core.now);
  }

  nextWake(): Instant | undefined {
    return this.#nextAt;
  }

  /** Something is looked up: the bucket that it is in needs no refreshing. */
  lookedUp(target: Uint8Array): void {
    for (const family of this.#core.families.values())
      this.#tableOf(family).bucketsAt.set(sharedBits(family.id, target), this.#core.now);
  }

  /** Newcomers are asked who they are. */
  #meet({ named, callers }: Family): void {
    this.#ask(named);
    this.#ask(callers);
  }

  #ask(newcomers: Map<string, Newcomer>): void {
    let met = 0;
    for (const [key, newcomer] of newcomers) {
      if (newcomer.isAsked) continue;
      if (met++ >= NEWCOMERS_PER_ROUND || !this.#core.mayAsk) return;
      newcomer.isAsked = true;
      const settled = () => void newcomers.delete(key);
      const asker = { answered: settled, slow() {}, failed: settled };
      this.#core.ask({ id: undefined, address: newcomer.address }, { method: "ping" }, asker);
    }
  }

  /** One that has not been heard for long is asked in each round. */
  #askSilent({ table }: Family): void {
    const { now } = this.#core;
    for (const node of table.nodes()) {
      if (node.heardAt !== undefined && now - node.heardAt < QUESTIONABLE_MS) continue;
      if (this.#core.mayAsk) this.#core.ask(node, { method: "ping" }, IGNORED);
      return;
    }
  }

  #lookUp(family: Family, now: Instant): void {
    const { table, id } = family;
    if (!family.knowsAnybody) return;
    const upkeep = this.#tableOf(family);
    const spanMs = table.provenCount < FEW_NODES ? FEW_NODES_LOOKUP_MS : REFRESH_MS;
    if (upkeep.homeAt === undefined || now - upkeep.homeAt >= spanMs) {
      upkeep.homeAt = now;
      this.#searches.nodes(family, id);
      return;
    }
    for (let bucket = 0; bucket < table.depth; bucket++) {
      const at = upkeep.bucketsAt.get(bucket);
      if (at !== undefined && now - at < REFRESH_MS) continue;
      upkeep.bucketsAt.set(bucket, now);
      this.#searches.nodes(family, randomIdNear(id, bucket, this.#core.setup.random));
      return;
    }
  }

  #tableOf(family: Family): TableUpkeep {
    const known = this.#tables.get(family);
    if (known) return known;
    const fresh: TableUpkeep = { homeAt: undefined, bucketsAt: new Map() };
    this.#tables.set(family, fresh);
    return fresh;
  }
}

/** The table hears of it, and nobody else needs to. */
const IGNORED = { answered() {}, slow() {}, failed() {} };
