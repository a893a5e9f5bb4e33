import { statSync } from "node:fs";
import { messageOf, SluiceError } from "../base/errors.ts";
import { Breather } from "./breather.ts";
import type { KeyValueChange, KeyValueStore } from "./contract.ts";
import { checksumOf } from "./kv-checksum.ts";
import type { Places } from "./kv-places.ts";
import { openRecovered } from "./kv-recovery.ts";
import { writeSnapshot } from "./kv-snapshot.ts";
import { asStoreError, troubleOf } from "./kv-sqlite-error.ts";
import { DamagedRecord, RecordFile } from "./kv-sqlite-file.ts";
import { Tip } from "./kv-tip.ts";
import { type CheckedChange, checkedChange, checkedKey } from "./kv-values.ts";

/** The first snapshot after a change comes so late: changes come in groups. */
const SNAPSHOT_AFTER_MS = 30_000;
/** Snapshots are at least so far apart, and so many times as far as the last one took: a large store writes rarely. */
const SNAPSHOT_EVERY_MS = 300_000;
const SNAPSHOT_REST = 100;
/** A tool beside writes for milliseconds; after so long something is wrong. */
const BUSY_LONGEST_MS = 10_000;
const BUSY_RETRY_MS = 5;

/** Opens the store for its owner: checked, repaired where it must be. `release` is called when it is closed. */
export async function openOwned(
  places: Places,
  warn: (message: string) => void,
  release: () => void,
): Promise<KeyValueStore> {
  const { file, snapshotSequence } = await openRecovered(places, warn);
  return new SqliteStore({ places, file, warn, release, owned: { snapshotSequence } });
}

/** Opens the store beside the engine that owns it. `release` is called when it is closed. */
export async function openBeside(
  places: Places,
  warn: (message: string) => void,
  release: () => void,
): Promise<KeyValueStore> {
  try {
    const file = new RecordFile(places.database, { mayCreate: true, busyMs: BUSY_LONGEST_MS });
    return new SqliteStore({ places, file, warn, release, owned: undefined });
  } catch (error) {
    throw asStoreError(error);
  }
}

interface Parts {
  readonly places: Places;
  readonly file: RecordFile;
  readonly warn: (message: string) => void;
  readonly release: () => void;
  /** Of the owner, who also makes the snapshots. */
  readonly owned: { readonly snapshotSequence: number | undefined } | undefined;
}

/** Records in SQLite: a commit is one transaction, synced before it is acknowledged. */
class SqliteStore implements KeyValueStore {
  readonly #parts: Parts;
  readonly #file: RecordFile;
  readonly #tip: Tip;
  readonly #inode: number;
  readonly #breather = new Breather();
  /** Commits happen one after another. */
  #last: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  #snapshotSequence: number | undefined;
  #snapshotTimer: ReturnType<typeof setTimeout> | undefined;
  #snapshotNotBeforeMs = 0;
  #snapshotting: Promise<void> = Promise.resolve();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#file = parts.file;
    this.#snapshotSequence = parts.owned?.snapshotSequence;
    this.#tip = new Tip(parts.places.tip, parts.warn);
    this.#inode = statSync(parts.places.database).ino;
    if (parts.owned !== undefined && this.#isSnapshotDue()) this.#planSnapshot();
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
        if (checksum !== checksumOf(key, value)) {
          throw new DamagedRecord(`${key} is damaged on disk; start the engine again, and it is repaired`);
        }
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
    // The next commit must not fail because this one did.
    this.#last = done.catch(() => {});
    return done;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #commit(change: CheckedChange): Promise<boolean> {
    // Commits are synchronous: many in a row would let nobody else have a turn.
    await this.#breather.breathe();
    const isDone = await this.#whenFree(() => {
      this.#refuseReplaced();
      return this.#file.commit(change);
    });
    if (isDone && change.set.size + change.delete.size > 0) {
      this.#tip.write(this.#file.state().sequence);
      if (this.#parts.owned !== undefined) this.#planSnapshot();
    }
    return isDone;
  }

  /** Waits, without holding up the event loop, while a tool beside writes. */
  async #whenFree<T>(work: () => T): Promise<T> {
    for (let leftMs = BUSY_LONGEST_MS; ; leftMs -= BUSY_RETRY_MS) {
      try {
        return work();
      } catch (error) {
        if (troubleOf(error) !== "busy" || leftMs <= 0) throw asStoreError(error);
      }
      await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS));
    }
  }

  #refuseClosed(): void {
    if (this.#closing !== undefined) throw new Error("the store is closed");
  }

  /** Beside an engine that starts and repairs its file, this one could write to what is thrown away. */
  #refuseReplaced(): void {
    if (this.#parts.owned !== undefined || statSync(this.#parts.places.database).ino === this.#inode) return;
    throw new SluiceError("bad_configuration", "the store was repaired meanwhile; try again");
  }

  #isSnapshotDue(): boolean {
    const { sequence, count } = this.#file.state();
    return sequence !== this.#snapshotSequence && (count > 0 || this.#snapshotSequence !== undefined);
  }

  #planSnapshot(): void {
    if (this.#snapshotTimer !== undefined || this.#closing !== undefined) return;
    const waitMs = Math.max(SNAPSHOT_AFTER_MS, this.#snapshotNotBeforeMs - performance.now());
    this.#snapshotTimer = setTimeout(() => {
      this.#snapshotting = this.#snapshot().finally(() => {
        this.#snapshotTimer = undefined;
      });
    }, waitMs);
    // Nobody should wait for it: closing makes one too.
    this.#snapshotTimer.unref?.();
  }

  /** A snapshot that cannot be made is told; the records themselves are safe. */
  async #snapshot(): Promise<void> {
    const beganMs = performance.now();
    try {
      if (!this.#isSnapshotDue()) return;
      const { sequence } = this.#file.state();
      await writeSnapshot(this.#parts.places);
      this.#snapshotSequence = sequence;
    } catch (error) {
      this.#parts.warn(`${this.#parts.places.snapshot} could not be written: ${messageOf(error)}`);
    } finally {
      const tookMs = performance.now() - beganMs;
      this.#snapshotNotBeforeMs = performance.now() + Math.max(SNAPSHOT_EVERY_MS, SNAPSHOT_REST * tookMs);
    }
  }

  async #close(): Promise<void> {
    await this.#last;
    clearTimeout(this.#snapshotTimer);
    await this.#snapshotting;
    try {
      if (this.#parts.owned !== undefined) await this.#snapshot();
      this.#tip.close();
      this.#file.close();
    } finally {
      this.#parts.release();
    }
  }
}
