import { randomBytes } from "node:crypto";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { KeyValueChange, KeyValueStore, StoreOptions } from "./contract.ts";
import { connectRedis, parseRedisUrl, type RedisClient, readTlsFiles } from "./kv-redis-client.ts";
import { FOLLOW_TIMEOUT_MS, pause, RedisReplica } from "./kv-redis-replica.ts";
import { valuesReply } from "./kv-redis-replies.ts";
import { ALL_KEYS, COMMIT, KEY_SEPARATOR, type RedisKeys, redisKeys } from "./kv-redis-scripts.ts";
import { type CheckedChange, checkedChange, checkedKey } from "./kv-values.ts";

/** A start waits this long for the server. */
const START_MS = 13_000;
const RETRY_MS = 250;
/** Longer names of changed keys are not logged; other processes then read all records again. */
const MAX_LOGGED = 64 * 1024;
/** Commits that wait for earlier ones; the library sends one after another. */
const QUEUE_LIMIT = 1_000;

/**
 * Opens a store on a Redis or Valkey server. Any number of processes may use it at the same time. Rejects with `store_unavailable` if the server does
 * not answer.
 */
export async function openRedis(url: string, { warn }: Pick<StoreOptions, "warn">): Promise<KeyValueStore> {
  const place = parseRedisUrl(url);
  const tls = await readTlsFiles(place);
  const client = connectRedis(place, tls);
  const follower = connectRedis(place, tls, FOLLOW_TIMEOUT_MS);
  try {
    await untilConnected(client);
    await untilConnected(follower);
    const writer = randomBytes(12).toString("hex");
    const keys = redisKeys(place.name, writer);
    const replica = new RedisReplica(follower, keys, writer);
    await checkDurability(client, warn);
    await replica.begin();
    return new RedisStore(client, keys, writer, replica);
  } catch (error) {
    client.close();
    follower.close();
    throw error instanceof SluiceError ? error : unavailable(messageOf(error));
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
      const isFinal = /NOAUTH|WRONGPASS|NOPERM|invalid password|AUTH|certificate/i.test(
        `${reason} ${client.problem}`,
      );
      if (isFinal || performance.now() > until) throw unavailable(client.problem ?? reason);
      await pause(RETRY_MS);
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
  readonly #writer: string;
  readonly #replica: RedisReplica;
  readonly #queue: Pending[] = [];
  #working: Promise<void> | undefined;
  /** Why it is not known whether the commit that was sent has been applied. */
  #doubt: string | undefined;
  #commits = 0;
  #isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(client: RedisClient, keys: RedisKeys, writer: string, replica: RedisReplica) {
    this.#client = client;
    this.#keys = keys;
    this.#writer = writer;
    this.#replica = replica;
  }

  async get(key: string): Promise<unknown> {
    this.#refuseClosed();
    const json = this.#replica.get(checkedKey(key));
    return json === undefined ? undefined : JSON.parse(json);
  }

  list(prefix: string): AsyncIterable<readonly [key: string, value: unknown]> {
    return this.#replica.list(prefix, () => this.#refuseClosed());
  }

  watch(prefix: string, changed: (keys: readonly string[]) => void): () => void {
    return this.#replica.watch(prefix, changed);
  }

  async commit(change: KeyValueChange): Promise<boolean> {
    this.#refuseClosed();
    const checked = checkedChange(change);
    this.refuseChanges();
    if (this.#queue.length >= QUEUE_LIMIT) throw unavailable("too many changes wait for the server");
    return new Promise((resolve, reject) => {
      this.#queue.push({ change: checked, resolve, reject });
      this.#working ??= this.#work();
    });
  }

  refuseChanges(): void {
    const problem = this.#client.problem ?? this.#doubt ?? this.#replica.problem;
    if (problem !== undefined) throw unavailable(problem);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    await this.#working;
    await this.#replica.close();
    // The record of the last commit expires in any case.
    await this.#client.command("DEL", this.#keys.last).catch(() => {});
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
    const { records, revision, log, last } = this.#keys;
    const checks = change.check.flatMap(([key, expected]) => [
      key,
      expected === undefined ? "-" : `=${expected}`,
    ]);
    const { set } = change;
    const deleted = [...change.delete];
    const changed = [...new Set([...deleted, ...set.keys()])].join(KEY_SEPARATOR);
    const logged = changed.length > MAX_LOGGED ? ALL_KEYS : changed;
    const counts = [change.check.length, deleted.length, set.size];
    const id = `${this.#writer}${++this.#commits}`;
    const args = [id, logged, ...counts, ...checks, ...deleted, ...[...set].flat()];
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          this.#replica.committing();
          const answer = await this.#client.run(COMMIT, [records, revision, log, last], args);
          const checkedKeys = change.check.map(([key]) => key);
          const { numbers, values } = valuesReply(answer, "EVALSHA (commit)", 2, checkedKeys.length);
          const [isDone, at] = numbers as [number, number];
          if (isDone === 1) this.#replica.wrote(change, at);
          else this.#replica.refused(checkedKeys, at, values);
          return isDone === 1;
        } catch (error) {
          if (isRefusal(error)) throw refused(error);
          if (attempt === 1 && isNotSent(error)) throw unavailable(messageOf(error));
          this.#doubt = this.#client.problem ?? messageOf(error);
          this.#refuseWaiting(unavailable(this.#doubt));
          if (this.#isClosed)
            throw unavailable("the store was closed before the server confirmed the last change");
          await pause(RETRY_MS);
        }
      }
    } finally {
      this.#doubt = undefined;
      this.#replica.ended();
    }
  }

  /** Refuses the commits behind the one that is sent: they were made while the server seemed to be there, and were not sent. */
  #refuseWaiting(reason: unknown): void {
    for (const { reject } of this.#queue.splice(0)) reject(reason);
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
