import { addressScope, addressText, type PeerAddress } from "../../base/address.ts";
import { equalBytes } from "../../base/bytes.ts";
import { earliest, type Instant } from "../../base/time.ts";
import { isSignedItem, itemTarget } from "../../wire/dht/item.ts";
import type { DhtItem, KrpcReply } from "../../wire/dht/krpc.ts";
import type { DhtInput, DhtTaskId, TaskReport } from "./contract.ts";
import type { DhtCore } from "./core.ts";
import type { Family } from "./family.ts";
import { MAX_FOUND_PEERS, MAX_LOOKUPS, MAX_TASKS } from "./limits.ts";
import { isShareable } from "./scope.ts";
import { Search, type SearchRequest } from "./search.ts";

type InputOf<K extends DhtInput["kind"]> = Extract<DhtInput, { kind: K }>;

/** All searches of tasks and of upkeep: a limited number runs in parallel, the others wait in order. */
export class Searches {
  readonly #core: DhtCore;
  /** Running searches, and those that wait for a free place or for the first node. */
  readonly #running = new Set<Search>();
  readonly #waiting = new Set<Search>();
  readonly #tasks = new Map<DhtTaskId, Search[]>();
  /** Number of searches that have ended. */
  ended = 0;
  #retryAt: Instant | undefined;
  /** Set while `fill` starts searches, because a search may end at once and call `fill` again. */
  #isFilling = false;

  constructor(core: DhtCore) {
    this.#core = core;
  }

  /** Looks up peers, and announces this engine. */
  peers({ task, infohash, announce }: InputOf<"peers">): void {
    const known = new Set<string>();
    this.#start(task, {
      target: infohash,
      query: (want) => ({ method: "get_peers", target: infohash, want, isScrape: false }),
      replied: (reply, from) => {
        const added = newPeers(reply, from, known);
        if (added.length > 0) this.#core.outputs.push({ kind: "peers", task, addresses: added });
        return false;
      },
      store: (token) => announce && { method: "announce_peer", target: infohash, token, ...announce },
    });
  }

  /** Looks up an item: the first valid immutable one, or the latest mutable one of the nearest nodes. */
  get({ task, target, signedBy }: InputOf<"get">): void {
    const newest = newestOf(this.#core, target, signedBy);
    this.#start(task, {
      target,
      query: (want) => ({ method: "get", target, want, sequence: undefined }),
      replied: (reply) => {
        const item = newest(reply);
        if (item) this.#core.outputs.push({ kind: "item", task, item });
        return item !== undefined && signedBy === undefined;
      },
    });
  }

  /** Stores an item. Outputs a newer one if the lookup finds it. */
  put({ task, item }: InputOf<"put">): void {
    const target = itemTarget(item, this.#core.setup.sha1);
    const newest = newestOf(this.#core, target, item.signed);
    this.#start(task, {
      target,
      query: (want) => ({ method: "get", target, want, sequence: item.signed?.sequence }),
      replied: (reply) => {
        const other = newest(reply);
        const isNewer = other?.signed && item.signed && other.signed.sequence > item.signed.sequence;
        if (isNewer) this.#core.outputs.push({ kind: "item", task, item: other });
        return false;
      },
      store: (token) => ({ method: "put", token, item, cas: undefined }),
    });
  }

  /** Looks up the nodes near a target, to fill the routing table. */
  nodes(family: Family, target: Uint8Array): void {
    const search = new Search(this.#core, family, nodesRequest(target), () => this.#over(search));
    this.#waiting.add(search);
    this.fill();
  }

  cancel(task: DhtTaskId): void {
    const searches = this.#tasks.get(task);
    this.#tasks.delete(task);
    for (const search of searches ?? []) search.end();
  }

  wake(now: Instant): void {
    const isRetry = this.#retryAt !== undefined && now >= this.#retryAt;
    if (isRetry) this.#retryAt = undefined;
    for (const search of [...this.#running])
      if (isRetry || (search.endsAt !== undefined && now >= search.endsAt)) search.step();
    this.scheduleRetry();
  }

  nextWake(): Instant | undefined {
    let next = this.#retryAt;
    for (const { endsAt } of this.#running) if (endsAt !== undefined) next = earliest(next, endsAt);
    return next;
  }

  #start(task: DhtTaskId, request: SearchRequest): void {
    const reports: TaskReport[] = [];
    const searches: Search[] = [];
    const families = this.#core.reachable;
    if (families.length === 0 || this.#tasks.size >= MAX_TASKS) {
      this.#core.outputs.push({ kind: "done", task, report: NOTHING });
      return;
    }
    for (const family of families) {
      const replied = this.#repliedOf(request, searches, family);
      const search = new Search(this.#core, family, { ...request, replied }, (report) => {
        this.#over(search);
        reports.push(report);
        // A family without nodes cannot begin its search.
        for (const other of searches) if (!other.hasBegun && !other.family.hasNodes) other.end();
        if (reports.length === families.length) this.#done(task, reports);
      });
      searches.push(search);
      this.#waiting.add(search);
    }
    this.#tasks.set(task, searches);
    this.fill();
  }

  /** Passes a reply to the request, and its nodes of the other family to the search there. A complete request ends both. */
  #repliedOf(request: SearchRequest, searches: readonly Search[], family: Family): SearchRequest["replied"] {
    return (reply, from) => {
      const isComplete = request.replied(reply, from);
      for (const other of searches) {
        if (other.family === family) continue;
        if (isComplete) other.end();
        else {
          const nodes = (other.family.family === 4 ? reply.nodes : reply.nodes6) ?? [];
          other.learn(nodes, from);
          if (nodes.length > 0 && this.#waiting.has(other)) this.#begin(other);
          else other.step();
        }
      }
      return isComplete;
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

  /** Starts waiting searches: a node has become known, or a search has ended. */
  fill(): void {
    if (this.#isFilling) return;
    this.#isFilling = true;
    for (const search of this.#waiting) {
      if (this.#running.size >= MAX_LOOKUPS) break;
      if (!search.family.hasNodes) continue;
      this.#begin(search);
    }
    this.#isFilling = false;
  }

  #begin(search: Search): void {
    this.#waiting.delete(search);
    this.#running.add(search);
    search.begin();
  }

  /** Schedules a retry if queries are rate-limited. Called at the end of each input. */
  scheduleRetry(): void {
    const { mayQuery, queries, now } = this.#core;
    if (!mayQuery && this.#running.size > 0) this.#retryAt ??= queries.freeAt(now);
  }
}

const NOTHING: TaskReport = { queries: 0, answers: 0, stored: 0 };

function nodesRequest(target: Uint8Array): SearchRequest {
  return {
    target,
    query: (want) => ({ method: "find_node", target, want }),
    replied: () => false,
  };
}

/** Returns the peers of a reply that are not in `known` yet and that its sender may share; adds them to `known`. */
function newPeers(reply: KrpcReply, from: PeerAddress, known: Set<string>): PeerAddress[] {
  const added: PeerAddress[] = [];
  const scope = addressScope(from.host);
  for (const address of reply.peers ?? []) {
    const key = addressText(address);
    if (known.size >= MAX_FOUND_PEERS || known.has(key) || !isShareable(addressScope(address.host), scope))
      continue;
    known.add(key);
    added.push(address);
  }
  return added;
}

/** Returns a function that takes a reply and returns its item if it is valid and newer than earlier ones. */
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
