import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { earliest, type Instant } from "../../base/time.ts";
import { isSignedItem, itemTarget } from "../../wire/dht-item.ts";
import type { DhtItem, KrpcReply } from "../../wire/krpc.ts";
import type { DhtInput, DhtTaskId, TaskReport } from "./contract.ts";
import type { DhtCore } from "./core.ts";
import type { Family } from "./family.ts";
import { MAX_FOUND_PEERS, MAX_LOOKUPS, MAX_TASKS } from "./limits.ts";
import { isTellable } from "./scope.ts";
import { Search, type SearchWish } from "./search.ts";

type InputOf<K extends DhtInput["kind"]> = Extract<DhtInput, { kind: K }>;

/** What is being looked for, of all tasks and of the upkeep: so many at a time, the others in their order. */
export class Searches {
  readonly #core: DhtCore;
  /** Those that run, and those that wait for their turn or for the first node. */
  readonly #running = new Set<Search>();
  readonly #waiting = new Set<Search>();
  readonly #tasks = new Map<DhtTaskId, Search[]>();
  /** All that ever ended. */
  ended = 0;
  #retryAt: Instant | undefined;
  /** One that ends as it begins must not begin the next from within. */
  #isFilling = false;

  constructor(core: DhtCore) {
    this.#core = core;
  }

  /** Looks for peers, and announces us. */
  peers({ task, infohash, announce }: InputOf<"peers">): void {
    const told = new Set<string>();
    this.#start(task, {
      target: infohash,
      question: (want) => ({ method: "get_peers", target: infohash, want, isScrape: false }),
      heard: (reply, from) => {
        const fresh = freshPeers(reply, from, told);
        if (fresh.length > 0) this.#core.outputs.push({ kind: "peers", task, addresses: fresh });
        return false;
      },
      ending: (token) => announce && { method: "announce_peer", target: infohash, token, ...announce },
    });
  }

  /** Looks for an item: an immutable one is found once; of mutable ones the latest that any of the nearest has. */
  get({ task, target, signedBy }: InputOf<"get">): void {
    const newest = newestOf(this.#core, target, signedBy);
    this.#start(task, {
      target,
      question: (want) => ({ method: "get", target, want, sequence: undefined }),
      heard: (reply) => {
        const item = newest(reply);
        if (item) this.#core.outputs.push({ kind: "item", task, item });
        return item !== undefined && signedBy === undefined;
      },
    });
  }

  /** Puts an item where it belongs. A newer one that is met on the way is told of. */
  put({ task, item }: InputOf<"put">): void {
    const target = itemTarget(item, this.#core.setup.sha1);
    const newest = newestOf(this.#core, target, item.signed);
    this.#start(task, {
      target,
      question: (want) => ({ method: "get", target, want, sequence: item.signed?.sequence }),
      heard: (reply) => {
        const other = newest(reply);
        const isNewer = other?.signed && item.signed && other.signed.sequence > item.signed.sequence;
        if (isNewer) this.#core.outputs.push({ kind: "item", task, item: other });
        return false;
      },
      ending: (token) => ({ method: "put", token, item, cas: undefined }),
    });
  }

  /** Looks for the nodes around a target, for the table's sake. */
  nodes(family: Family, target: Uint8Array): void {
    const search = new Search(this.#core, family, nodesWish(target), () => this.#over(search));
    this.#waiting.add(search);
    this.fill();
  }

  cancel(task: DhtTaskId): void {
    const searches = this.#tasks.get(task);
    this.#tasks.delete(task);
    for (const search of searches ?? []) search.end();
  }

  /** How many run or wait. */
  get count(): number {
    return this.#running.size + this.#waiting.size;
  }

  wake(now: Instant): void {
    const isRetry = this.#retryAt !== undefined && now >= this.#retryAt;
    if (isRetry) this.#retryAt = undefined;
    for (const search of [...this.#running])
      if (isRetry || (search.endsAt !== undefined && now >= search.endsAt)) search.step();
    this.noteRate();
  }

  nextWake(): Instant | undefined {
    let next = this.#retryAt;
    for (const { endsAt } of this.#running) if (endsAt !== undefined) next = earliest(next, endsAt);
    return next;
  }

  #start(task: DhtTaskId, wish: SearchWish): void {
    const reports: TaskReport[] = [];
    const searches: Search[] = [];
    const families = this.#core.reachable;
    if (families.length === 0 || this.#tasks.size >= MAX_TASKS) {
      this.#core.outputs.push({ kind: "done", task, report: NOTHING });
      return;
    }
    for (const family of families) {
      const heard = this.#heardBy(wish, searches, family);
      const search = new Search(this.#core, family, { ...wish, heard }, (report) => {
        this.#over(search);
        reports.push(report);
        // Where nobody is known there is nobody to wait for.
        for (const other of searches) if (!other.hasBegun && !other.family.knowsAnybody) other.end();
        if (reports.length === families.length) this.#done(task, reports);
      });
      searches.push(search);
      this.#waiting.add(search);
    }
    this.#tasks.set(task, searches);
    this.fill();
  }

  /** What is heard goes to the wish; nodes of the other family to the search there. Who has all ends both. */
  #heardBy(wish: SearchWish, searches: readonly Search[], family: Family): SearchWish["heard"] {
    return (reply, from) => {
      const isEnough = wish.heard(reply, from);
      for (const other of searches) {
        if (other.family === family) continue;
        if (isEnough) other.end();
        else {
          const nodes = (other.family.family === 4 ? reply.nodes : reply.nodes6) ?? [];
          other.learn(nodes, from);
          if (nodes.length > 0 && this.#waiting.has(other)) this.#begin(other);
          else other.step();
        }
      }
      return isEnough;
    };
  }

  #done(task: DhtTaskId, reports: readonly TaskReport[]): void {
    if (!this.#tasks.delete(task)) return;
    const sum = (name: keyof TaskReport) => reports.reduce((all, report) => all + report[name], 0);
    const report = { queries: sum("queries"), answers: sum("answers"), stored: sum("stored") };
    this.#core.outputs.push({ kind: "done", task, report });
  }

  #over(search: Search): void {
    this.ended++;
    this.#running.delete(search);
    this.#waiting.delete(search);
    this.fill();
  }

  /** Begins what can begin: somebody is known now, or another has ended. */
  fill(): void {
    if (this.#isFilling) return;
    this.#isFilling = true;
    for (const search of this.#waiting) {
      if (this.#running.size >= MAX_LOOKUPS) break;
      if (!search.family.knowsAnybody) continue;
      this.#begin(search);
    }
    this.#isFilling = false;
  }

  #begin(search: Search): void {
    this.#waiting.delete(search);
    this.#running.add(search);
    search.begin();
  }

  /** Where questions had to wait, there is a time to go on. To be called after all work of an instant. */
  noteRate(): void {
    const { mayAsk, queries, now } = this.#core;
    if (!mayAsk && this.#running.size > 0) this.#retryAt ??= queries.freeAt(now);
  }
}

const NOTHING: TaskReport = { queries: 0, answers: 0, stored: 0 };

function nodesWish(target: Uint8Array): SearchWish {
  return {
    target,
    question: (want) => ({ method: "find_node", target, want }),
    heard: () => false,
  };
}

/** The peers of an answer that were not told before, and that its sender may tell of. */
function freshPeers(reply: KrpcReply, from: PeerAddress, told: Set<string>): PeerAddress[] {
  const fresh: PeerAddress[] = [];
  const scope = addressScope(from.host);
  for (const address of reply.peers ?? []) {
    const key = addressText(address);
    if (told.size >= MAX_FOUND_PEERS || told.has(key) || !isTellable(addressScope(address.host), scope))
      continue;
    told.add(key);
    fresh.push(address);
  }
  return fresh;
}

/** Gives the item of an answer where it is the one that is meant, and newer than those before. */
function newestOf(
  { setup }: DhtCore,
  target: Uint8Array,
  signedBy: { readonly key: Uint8Array; readonly salt: Uint8Array } | undefined,
): (reply: KrpcReply) => DhtItem | undefined {
  let newest: number | undefined;
  return ({ item }) => {
    if (!item) return undefined;
    if (!signedBy) return equalBytes(setup.sha1(item.value), target) && !item.signed ? item : undefined;
    if (!item.signed || !equalBytes(item.signed.key, signedBy.key)) return undefined;
    if (newest !== undefined && item.signed.sequence <= newest) return undefined;
    const signed = { ...item.signed, salt: signedBy.salt };
    if (!isSignedItem(item.value, signed, setup.verifierOf)) return undefined;
    newest = signed.sequence;
    return { value: item.value, signed };
  };
}
