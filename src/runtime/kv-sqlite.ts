import { statSync } from "node:fs";
import { messageOf, SluiceError } from "../base/errors.ts";
import { Breather } from "./breather.ts";
import type { KeyValueChange, KeyValueStore } from "./contract.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { StorePaths } from "./kv-paths.ts";
import { openRecovered } from "./kv-recovery.ts";
import { writeSnapshot } from "./kv-snapshot.ts";
import { asStoreError, sqliteErrorKind } from "./kv-sqlite-error.ts";
import { DamagedRecord, RecordFile } from "./kv-sqlite-file.ts";
import { Tip } from "./kv-tip.ts";
import { type CheckedChange, checkedChange, checkedKey } from "./kv-values.ts";

/** Delay of a snapshot after a change, because changes come in groups. */
const SNAPSHOT_DELAY_MS = 30_000;
/** Snapshots are at least this far apart, and at least this multiple of the time that the last one took. */
const SNAPSHOT_INTERVAL_MS = 300_000;
const SNAPSHOT_REST_FACTOR = 100;
/** Other processes hold the database for milliseconds; longer means a fault. */
const BUSY_TIMEOUT_MS = 10_000;
const BUSY_RETRY_MS = 5;

/** Opens the store for its owner; checks and repairs it first. `release` is called when the store is closed. */
export async function openOwned(
  paths: StorePaths,
  warn: (message: string) => void,
  release: () => void,
): Promise<KeyValueStore> {
  const { file, snapshotSequence } = await openRecovered(paths, warn);
  return new SqliteStore({ paths, file, warn, release, owned: { snapshotSequence } });
}

/** Opens the store that an engine owns, without a check. `release` is called when the store is closed. */
export async function openShared(
  paths: StorePaths,
  warn: (message: string) => void,
  release: () => void,
): Promise<KeyValueStore> {
  try {
    const file = new RecordFile(paths.database, { mayCreate: true, busyMs: BUSY_TIMEOUT_MS });
    return new SqliteStore({ paths, file, warn, release, owned: undefined });
  } catch (error) {
    throw asStoreError(error);
  }
}

interface SqliteStoreOptions {
  readonly paths: StorePaths;
  readonly file: RecordFile;
  readonly warn: (message: string) => void;
  readonly release: () => void;
  /** Present if this process owns the store; the owner writes the snapshots. */
  readonly owned: { readonly snapshotSequence: number | undefined } | undefined;
}

/** A store in SQLite. A commit is one transaction, synced before it is acknowledged. */
class SqliteStore implements KeyValueStore {
  readonly #options: SqliteStoreOptions;
  readonly #file: RecordFile;
  readonly #tip: Tip;
  readonly #inode: number;
  readonly #breather = new Breather();
  /** The last commit; commits run one after another. */
  #last: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  #snapshotSequence: number | undefined;
  #snapshotTimer: ReturnType<typeof setTimeout> | undefined;
  #snapshotNotBeforeMs = 0;
  #snapshotting: Promise<void> = Promise.resolve();

  constructor(options: SqliteStoreOptions) {
    this.#options = options;
    this.#file = options.file;
    this.#snapshotSequence = options.owned?.snapshotSequence;
    this.#tip = new Tip(options.paths.tip, options.warn);
    this.#inode = statSync(options.paths.database).ino;
    if (options.owned !== undefined && this.#isSnapshotDue()) this.#scheduleSnapshot();
  }

  async get(key: string): Promise<unknown> {
    this.#refuseClosed();
    const json = this.#file.get(checkedKey(key));
    return json === undefined ? undefined : JSON.parse(json);
  }

  async *list(prefix: string): AsyncIterable<readonly [key: string, value: unknown]> {
    const breather = new Breather();
    for (let last: string | undefined; ; ) {
      this.#refuseClosed();
      const batch = this.#file.batch(prefix, last);
      for (const { key, value, checksum } of batch) {
        if (!key.startsWith(prefix)) return;
        if (checksum !== checksumOf(key, value)) throw new DamagedRecord(key);
        yield [key, JSON.parse(value)];
        last = key;
      }
      if (batch.length === 0) return;
      await breather.breathe();
    }
  }

  async commit(change: KeyValueChange): Promise<boolean> {
    this.#refuseClosed();
    const checked = checkedChange(change);
    const done = this.#last.then(() => this.#commit(checked));
    // A failed commit must not fail the next one.
    this.#last = done.catch(() => {});
    return done;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #commit(change: CheckedChange): Promise<boolean> {
    // Commits are synchronous; many in a row would block the event loop.
    await this.#breather.breathe();
    const isDone = await this.#retryWhileBusy(() => {
      this.#refuseReplaced();
      return this.#file.commit(change);
    });
    if (isDone && change.set.size + change.delete.size > 0) {
      this.#tip.write(this.#file.state().sequence);
      if (this.#options.owned !== undefined) this.#scheduleSnapshot();
    }
    return isDone;
  }

  /** Retries while another process writes, without blocking the event loop. */
  async #retryWhileBusy<T>(work: () => T): Promise<T> {
    for (let leftMs = BUSY_TIMEOUT_MS; ; leftMs -= BUSY_RETRY_MS) {
      try {
        return work();
      } catch (error) {
        if (sqliteErrorKind(error) !== "busy" || leftMs <= 0) throw asStoreError(error);
      }
      await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS));
    }
  }

  #refuseClosed(): void {
    if (this.#closing !== undefined) throw new Error("the store is closed");
  }

  /** Refuses to write to a database file that an engine has replaced while it repaired the store. */
  #refuseReplaced(): void {
    const { owned, paths } = this.#options;
    if (owned !== undefined || statSync(paths.database).ino === this.#inode) return;
    throw new SluiceError("bad_configuration", "the engine has repaired the store meanwhile; try again");
  }

  #isSnapshotDue(): boolean {
    const { sequence, count } = this.#file.state();
    return sequence !== this.#snapshotSequence && (count > 0 || this.#snapshotSequence !== undefined);
  }

  #scheduleSnapshot(): void {
    if (this.#snapshotTimer !== undefined || this.#closing !== undefined) return;
    const waitMs = Math.max(SNAPSHOT_DELAY_MS, this.#snapshotNotBeforeMs - performance.now());
    this.#snapshotTimer = setTimeout(() => {
      this.#snapshotting = this.#snapshot().finally(() => {
        this.#snapshotTimer = undefined;
      });
    }, waitMs);
    // The process need not wait for it: `close` writes a snapshot too.
    this.#snapshotTimer.unref?.();
  }

  /** Writes a snapshot; a failure is only a warning, because the records themselves are safe. */
  async #snapshot(): Promise<void> {
    const { paths, warn } = this.#options;
    const startMs = performance.now();
    try {
      if (!this.#isSnapshotDue()) return;
      const { sequence } = this.#file.state();
      await writeSnapshot(paths);
      this.#snapshotSequence = sequence;
    } catch (error) {
      warn(`${paths.snapshot} could not be written: ${messageOf(error)}`);
    } finally {
      const endMs = performance.now();
      const restMs = Math.max(SNAPSHOT_INTERVAL_MS, SNAPSHOT_REST_FACTOR * (endMs - startMs));
      this.#snapshotNotBeforeMs = endMs + restMs;
    }
  }

  async #close(): Promise<void> {
    await this.#last;
    clearTimeout(this.#snapshotTimer);
    await this.#snapshotting;
    try {
      if (this.#options.owned !== undefined) await this.#snapshot();
      this.#tip.close();
      this.#file.close();
    } finally {
      this.#options.release();
    }
  }
}
