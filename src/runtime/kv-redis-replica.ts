import { SluiceError } from "../base/errors.ts";
import { listRecords } from "./kv-memory.ts";
import type { RedisClient } from "./kv-redis-client.ts";
import {
  type LogEntry,
  logReply,
  pageReply,
  positionReply,
  unexpectedReply,
  valuesReply,
} from "./kv-redis-replies.ts";
import { ALL_KEYS, KEY_SEPARATOR, POSITION, READ, type RedisKeys } from "./kv-redis-scripts.ts";
import type { CheckedChange } from "./kv-values.ts";

/** How long the server waits for a commit before it answers that there is none. */
const BLOCK_MS = 2_000;
/** A server that takes longer than this to say so cannot be reached. */
export const FOLLOW_TIMEOUT_MS = BLOCK_MS + 3_000;
/** Entries of the log in one answer. */
const LOG_PAGE = 100;
/** Records in one answer: at most 12 MB, and some 100 KB as a rule. */
const READ_KEYS = 200;
const SCAN_RECORDS = 1_000;
/** Pages of all records: ten million records. A server that never ends the list must not fill the memory, or keep the engine from
 * starting. */
const MAX_PAGES = 10_000;
const RETRY_MS = 250;

interface Watcher {
  readonly prefix: string;
  readonly changed: (keys: readonly string[]) => void;
}

/**
 * A copy of all records in memory. It follows the log of commits on a connection of its own. After an interruption it continues from its last
 * revision; it reads all records again if that revision is not in the log any more (the log was cut, or a failover lost commits).
 */
export class RedisReplica {
  readonly #follower: RedisClient;
  readonly #keys: RedisKeys;
  /** The begin of the ids of this process's commits. */
  readonly #writer: string;
  #records = new Map<string, string>();
  /** The revision up to which the log has been followed, and the id of that commit. */
  #revision = 0;
  #commit = "";
  /** Keys whose values are of these later revisions than `#revision`, from answers to commits: older values of them, still under way, are ignored. */
  readonly #newer = new Map<string, number>();
  /** Keys that were read while a commit of this process is under way, with the revisions of their values. */
  readonly #read = new Map<string, number>();
  #isCommitting = false;
  readonly #watchers = new Set<Watcher>();
  #problem: string | undefined;
  #isClosed = false;
  #following: Promise<void> = Promise.resolve();

  constructor(follower: RedisClient, keys: RedisKeys, writer: string) {
    this.#follower = follower;
    this.#keys = keys;
    this.#writer = writer;
  }

  /** Set while the server does not answer on an open connection. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Reads all records, then follows the log until `close`. */
  async begin(): Promise<void> {
    await this.#load();
    this.#following = this.#follow();
  }

  get(key: string): string | undefined {
    return this.#records.get(key);
  }

  list(prefix: string, refuseClosed: () => void): ReturnType<typeof listRecords> {
    return listRecords(() => this.#records, prefix, refuseClosed);
  }

  watch(prefix: string, changed: Watcher["changed"]): () => void {
    const watcher = { prefix, changed };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** A commit of this process is sent; `ended` follows. */
  committing(): void {
    this.#isCommitting = true;
  }

  /** The server has applied the commit that was sent. */
  wrote({ set, delete: deleted }: CheckedChange, revision: number): void {
    const isOld = (key: string) => (this.#read.get(key) ?? 0) > revision;
    for (const key of deleted) if (!set.has(key) && !isOld(key)) this.#records.delete(key);
    for (const [key, json] of set) if (!isOld(key)) this.#records.set(key, json);
    if (revision > this.#revision)
      for (const keys of [deleted, set.keys()]) for (const key of keys) this.#newer.set(key, revision);
  }

  /** The server has not applied the commit: `values` are those of the keys that were checked. */
  refused(keys: readonly string[], revision: number, values: readonly (string | null)[]): void {
    const different = keys.filter((key, i) => this.#records.get(key) !== (values[i] ?? undefined));
    this.#store(keys, revision, values);
    if (revision > this.#revision) for (const key of keys) this.#newer.set(key, revision);
    this.#tell(different);
  }

  /** The commit was answered, or not sent. */
  ended(): void {
    this.#isCommitting = false;
    this.#read.clear();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#follower.close();
    await this.#following;
  }

  async #follow(): Promise<void> {
    let isSure = true;
    while (!this.#isClosed) {
      try {
        if (!isSure && !(await this.#isContinued())) await this.#load();
        isSure = true;
        this.#problem = undefined;
        const { log } = this.#keys;
        const from = `${this.#revision}-0`;
        const args = ["BLOCK", String(BLOCK_MS), "COUNT", String(LOG_PAGE), "STREAMS", log, from];
        const answer = await this.#follower.command("XREAD", ...args);
        if (answer === null) isSure = await this.#isContinued();
        else await this.#apply(logReply(answer));
      } catch (error) {
        if (this.#isClosed) return;
        isSure = false;
        // A server that refuses or closes this connection may still answer commits.
        if (isTimeout(error)) this.#problem = "the server does not answer";
        else if (error instanceof SluiceError) this.#problem = error.message;
        await pause(RETRY_MS);
      }
    }
  }

  /** Whether the log still has the commit up to which it was followed. */
  async #isContinued(): Promise<boolean> {
    const [revision, commit] = await this.#position(String(this.#revision));
    return revision >= this.#revision && commit === this.#commit;
  }

  async #position(at: string): Promise<[revision: number, commit: string]> {
    const { revision, log } = this.#keys;
    return positionReply(await this.#follower.run(POSITION, [revision, log], [at]));
  }

  /** Applies entries of the log. */
  async #apply(entries: readonly LogEntry[]): Promise<void> {
    const changed = new Set<string>();
    let revision = this.#revision;
    for (const [at, [, id, , keys]] of entries) {
      if (at !== `${++revision}-0` || keys === ALL_KEYS) return this.#load();
      if (!id.startsWith(this.#writer)) for (const key of keys.split(KEY_SEPARATOR)) changed.add(key);
    }
    const all = [...changed];
    for (let at = 0; at < all.length; at += READ_KEYS) {
      const keys = all.slice(at, at + READ_KEYS);
      const answer = await this.#follower.run(READ, [this.#keys.records, this.#keys.revision], keys);
      const { numbers, values } = valuesReply(answer, "EVALSHA (read)", 1, keys.length);
      this.#store(keys, numbers[0]!, values);
    }
    this.#followed(revision, entries.at(-1)![1][1]);
    this.#tell(all);
  }

  #store(keys: readonly string[], revision: number, values: readonly (string | null)[]): void {
    for (const [i, key] of keys.entries()) {
      if ((this.#newer.get(key) ?? 0) > revision) continue;
      const value = values[i] ?? undefined;
      if (value === undefined) this.#records.delete(key);
      else this.#records.set(key, value);
      if (this.#isCommitting) this.#read.set(key, revision);
    }
  }

  #followed(revision: number, commit: string): void {
    this.#revision = revision;
    this.#commit = commit;
    for (const [key, at] of this.#newer) if (at <= revision) this.#newer.delete(key);
  }

  /** Reads all records. Until that is done, `get` and `list` return the previous ones. */
  async #load(): Promise<void> {
    const [revision, commit] = await this.#position("");
    // After a failover that lost commits, revisions count from an earlier one.
    if (revision < this.#revision) this.#newer.clear();
    const fresh = new Map<string, string>();
    let cursor = "0";
    let pages = 0;
    do {
      if (++pages > MAX_PAGES) throw unexpectedReply("HSCAN");
      const args = [this.#keys.records, cursor, "COUNT", String(SCAN_RECORDS)];
      const [next, page] = pageReply(await this.#follower.command("HSCAN", ...args));
      for (let at = 0; at < page.length; at += 2) fresh.set(page[at]!, page[at + 1]!);
      cursor = next;
    } while (cursor !== "0");
    for (const [key, at] of this.#newer) {
      const own = this.#records.get(key);
      if (at <= revision) continue;
      if (own === undefined) fresh.delete(key);
      else fresh.set(key, own);
    }
    const before = this.#records;
    this.#records = fresh;
    if (this.#isCommitting) for (const key of fresh.keys()) this.#read.set(key, revision);
    this.#followed(revision, commit);
    const changed = [...fresh].filter(([key, json]) => before.get(key) !== json).map(([key]) => key);
    for (const key of before.keys()) if (!fresh.has(key)) changed.push(key);
    this.#tell(changed);
  }

  #tell(keys: readonly string[]): void {
    for (const { prefix, changed } of [...this.#watchers]) {
      const some = keys.filter((key) => key.startsWith(prefix));
      if (some.length > 0) changed(some);
    }
  }
}

/** Whether `commandTimeout` of the client has passed. */
function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === "Command timed out";
}

/** Waits before the server is tried again. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
