import { randomBytes } from "node:crypto";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { KeyValueChange, KeyValueStore, StoreOptions } from "./contract.ts";
import { connectRedis, parseRedisUrl, type RedisClient } from "./kv-redis-client.ts";
import { ACQUIRE, COMMIT, LIST, RELEASE, RENEW, type RedisKeys, redisKeys } from "./kv-redis-scripts.ts";
import { type CheckedChange, canonicalJson, checkedChange, checkedKey } from "./kv-values.ts";

/** How long the server keeps the lease of an owner that does not renew it: another engine can take over after this time. */
const LEASE_MS = 10_000;
/** Three attempts within a lease. */
const RENEW_MS = 3_000;
/** A start waits this long for the server, and for the lease of an engine that was killed. */
const START_MS = LEASE_MS + 3_000;
const START_RETRY_MS = 250;
/** Records that one command reads: at most 12 MB, and some 100 KB as a rule. */
const PAGE_RECORDS = 200;
/** Commits that wait for earlier ones; the library sends one after another. */
const QUEUE_LIMIT = 1_000;

/**
 * Opens a store on a Redis or Valkey server. The engine owns it by a lease; a tool (`shared`) writes beside the owner, as with SQLite.
 * Rejects with `bad_configuration` if another engine owns it, `store_unavailable` if the server does not answer.
 */
export async function openRedis(
  url: string,
  { shared, warn }: Pick<StoreOptions, "shared" | "warn">,
): Promise<KeyValueStore> {
  const place = parseRedisUrl(url);
  const client = connectRedis(place);
  try {
    await untilConnected(client);
    const store = new RedisStore(client, redisKeys(place.name, randomBytes(12).toString("hex")), warn);
    if (!shared) await store.acquire();
    await checkDurability(client, warn);
    return store;
  } catch (error) {
    client.close();
    throw error;
  }
}

async function untilConnected(client: RedisClient): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    try {
      await client.command("PING");
      return;
    } catch (error) {
      const reason = messageOf(error);
      const isFinal = /NOAUTH|WRONGPASS|NOPERM|invalid password|AUTH/i.test(`${reason} ${client.problem}`);
      if (isFinal || performance.now() > until) throw unavailable(client.problem ?? reason);
      await pause(START_RETRY_MS);
    }
  }
}

/** Warns if acknowledged records can be lost. The server answers a commit after it has written it to its log (`appendonly`). */
async function checkDurability(client: RedisClient, warn: (message: string) => void): Promise<void> {
  const value = async (name: string) => {
    const answer = (await client.command("CONFIG", "GET", name)) as string[];
    return answer[1];
  };
  try {
    if ((await value("appendonly")) !== "yes")
      warn(
        "the store's server keeps no log (appendonly no): records are lost if it stops; set appendonly yes",
      );
    else if ((await value("appendfsync")) !== "always")
      warn(
        "the store's server syncs its log once a second (appendfsync): a power failure can lose the last second; set appendfsync always",
      );
    if (!["noeviction", undefined].includes(await value("maxmemory-policy")))
      warn("the store's server may evict records when its memory is full; set maxmemory-policy noeviction");
  } catch (error) {
    warn(`cannot check whether the store's server keeps records safely (CONFIG GET): ${messageOf(error)}`);
  }
}

/** A commit whose answer is not known yet. */
interface Pending {
  readonly change: CheckedChange;
  readonly resolve: (isDone: boolean) => void;
  readonly reject: (reason: unknown) => void;
}

class RedisStore implements KeyValueStore {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #warn: (message: string) => void;
  /** The lease; empty for a tool. */
  #token = "";
  #isLost = false;
  #queue: Pending[] = [];
  #working: Promise<void> | undefined;
  #commits = 0;
  #renewal: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(client: RedisClient, keys: RedisKeys, warn: (message: string) => void) {
    this.#client = client;
    this.#keys = keys;
    this.#warn = warn;
  }

  /** Takes the lease, and renews it until the store is closed. */
  async acquire(): Promise<void> {
    const { owner, fence } = this.#keys;
    const until = performance.now() + START_MS;
    for (;;) {
      const args = [randomBytes(12).toString("hex"), LEASE_MS];
      const token = await this.#client.run(ACQUIRE, [owner, fence], args);
      if (typeof token === "string") {
        this.#token = token;
        break;
      }
      if (performance.now() > until)
        throw new SluiceError("bad_configuration", "another engine uses this store; stop it first");
      await pause(START_RETRY_MS);
    }
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS);
    this.#renewal.unref();
    this.#client.onReady(() => void this.#renew());
  }

  async get(key: string): Promise<unknown> {
    this.#refuseClosed();
    const json = await this.#read(() => this.#client.command("HGET", this.#keys.records, checkedKey(key)));
    return json === null ? undefined : JSON.parse(json as string);
  }

  async *list(prefix: string): AsyncGenerator<readonly [key: string, value: unknown]> {
    const { names, records } = this.#keys;
    let from = prefix === "" ? "-" : `[${prefix}`;
    for (;;) {
      this.#refuseClosed();
      const args = [from, prefix, PAGE_RECORDS];
      const page = (await this.#read(() => this.#client.run(LIST, [records, names], args))) as string[];
      for (let at = 0; at < page.length; at += 2) yield [page[at]!, JSON.parse(page[at + 1]!)];
      if (page.length < 2 * PAGE_RECORDS) return;
      from = `(${page.at(-2)}`;
    }
  }

  async commit(change: KeyValueChange): Promise<boolean> {
    this.#refuseClosed();
    if (this.#isLost)
      throw unavailable("another engine has taken over this store; restart this engine to use it again");
    const checked = checkedChange(change);
    const { problem } = this.#client;
    if (problem !== undefined) throw unavailable(problem);
    if (this.#queue.length >= QUEUE_LIMIT) throw unavailable("too many changes wait for the server");
    return new Promise((resolve, reject) => {
      this.#queue.push({ change: checked, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    clearInterval(this.#renewal);
    await this.#working;
    try {
      const { owner, last } = this.#keys;
      if (this.#token !== "" && !this.#isLost) await this.#client.run(RELEASE, [owner], [this.#token]);
      await this.#client.command("DEL", last);
    } catch {
      // The lease and the record of the last commit expire.
    }
    this.#client.close();
  }

  /** Sends the commits one after another. */
  async #work(): Promise<void> {
    for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
      try {
        next.resolve(await this.#send(next.change));
      } catch (error) {
        next.reject(error);
        this.#refuseWaiting(error);
      }
    }
    this.#working = undefined;
  }

  /**
   * Sends one commit. If the connection breaks before the answer, the engine cannot know whether the server has applied it: it is repeated, under the
   * same id, until the server says so, or until the store is closed. So a commit that rejects has changed nothing.
   */
  async #send(change: CheckedChange): Promise<boolean> {
    const { records, names, owner, last } = this.#keys;
    const checks = change.check.flatMap(([key, expected]) => [
      key,
      expected === undefined ? "-" : `=${expected}`,
    ]);
    const sets = [...change.set].flatMap(([key, json]) => [key, canonicalJson(JSON.parse(json))]);
    const deleted = [...change.delete];
    const counts = [change.check.length, deleted.length, change.set.size];
    const id = String(++this.#commits);
    const args = [this.#token, id, ...counts, ...checks, ...deleted, ...sets];
    for (let attempt = 1; ; attempt++) {
      try {
        const result = await this.#client.run(COMMIT, [records, names, owner, last], args);
        if (result !== -1) return result === 1;
        // The lease may have expired during an interruption without another owner.
        if (!(await this.#renew())) throw unavailable("another engine has taken over this store");
      } catch (error) {
        if (error instanceof SluiceError) throw error;
        if (isRefusal(error)) throw refused(error);
        if (attempt === 1 && isNotSent(error)) throw unavailable(messageOf(error));
        this.#refuseWaiting(unavailable(this.#client.problem ?? messageOf(error)));
        if (this.#isClosed)
          throw unavailable("the store was closed before the server confirmed the last change");
        await pause(START_RETRY_MS);
      }
    }
  }

  /** Refuses the commits behind the one that is sent: they were made while the server seemed to be there, and were not sent. */
  #refuseWaiting(reason: unknown): void {
    for (const { reject } of this.#queue.splice(0)) reject(reason);
  }

  /** Renews the lease. Resolves to false if another process has taken it; a failure of the connection is not that. */
  async #renew(): Promise<boolean> {
    const { owner, fence } = this.#keys;
    if (this.#token === "" || this.#isLost) return !this.#isLost;
    const renewed = await this.#client
      .run(RENEW, [owner, fence], [this.#token, LEASE_MS])
      .catch(() => undefined);
    if (renewed === 0 && !this.#isLost && !this.#isClosed) {
      this.#isLost = true;
      this.#warn("another engine has taken over the store; this engine changes nothing any more");
    }
    return !this.#isLost;
  }

  async #read(work: () => Promise<unknown>): Promise<unknown> {
    try {
      return await work();
    } catch (error) {
      this.#refuseClosed();
      throw isRefusal(error) ? refused(error) : unavailable(this.#client.problem ?? messageOf(error));
    }
  }

  #refuseClosed(): void {
    if (this.#isClosed) throw new Error("the store is closed");
  }
}

function unavailable(reason: string): SluiceError {
  return new SluiceError("store_unavailable", `the store's server: ${reason}`);
}

/** Whether the server has answered with an error, so that it has changed nothing. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === "ReplyError";
}

function refused(error: unknown): SluiceError {
  const reason = messageOf(error);
  return /^OOM/.test(reason)
    ? new SluiceError("disk_full", `the memory of the store's server is full: ${reason}`)
    : unavailable(reason);
}

/** Whether the client had no connection, so that the server has not received the command. */
function isNotSent(error: unknown): boolean {
  return /enableOfflineQueue|Stream isn't writeable/i.test(messageOf(error));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
