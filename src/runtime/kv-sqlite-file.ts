import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { checksumOf, EMPTY_DIGEST, toggled } from "./kv-checksum.ts";
import { sqliteErrorKind } from "./kv-sqlite-error.ts";
import { type CheckedChange, holds } from "./kv-values.ts";

/** The version of the schema, stored in `user_version` and in the state record. */
export const TABLES_VERSION = 1;

/** The schema exactly as the file must contain it, so that a flipped bit in it is detected. */
export const TABLES: readonly string[] = [
  "CREATE TABLE record (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, checksum TEXT NOT NULL) STRICT",
  "CREATE TABLE state (id INTEGER PRIMARY KEY, value TEXT NOT NULL, checksum TEXT NOT NULL) STRICT",
];

/** Size of the write-ahead log that triggers a checkpoint: 1 MiB, which takes a few milliseconds. */
const CHECKPOINT_PAGES = 256;
/** Rows of one query, at most 60 KiB each. */
const BATCH_ROWS = 64;
const STATE_KEY = "state";

/** A record as stored. */
export interface StoredRecord {
  readonly key: string;
  readonly value: string;
  readonly checksum: string;
}

/** The state record, updated by every commit in the same transaction. */
export interface StoreState {
  readonly version: number;
  /** Number of commits. */
  readonly sequence: number;
  /** Number of records. */
  readonly count: number;
  /** Digest of all records' checksums ({@link toggled}). */
  readonly digest: string;
}

/** The record `key`, or the state record, does not match its checksum. */
export class DamagedRecord extends Error {
  override readonly name = "DamagedRecord";

  constructor(key: string) {
    super(`${key} is damaged on disk; restart the engine to repair it`);
  }
}

/** A connection to a file of records. Every call is synchronous and short. */
export class RecordFile {
  readonly #database: DatabaseSync;
  readonly #get: StatementSync;
  readonly #from: StatementSync;
  readonly #after: StatementSync;
  readonly #checksum: StatementSync;
  readonly #put: StatementSync;
  readonly #delete: StatementSync;
  readonly #state: StatementSync;
  readonly #putState: StatementSync;

  /** Opens the file; creates it and its tables if `mayCreate`. Throws SQLite's errors. */
  constructor(path: string, { mayCreate, busyMs }: { mayCreate: boolean; busyMs: number }) {
    if (mayCreate) closeSync(openSync(path, "a", 0o600));
    this.#database = new DatabaseSync(path);
    try {
      this.#prepareFile(mayCreate, busyMs);
      const prepare = (sql: string) => this.#database.prepare(sql);
      this.#get = prepare("SELECT value, checksum FROM record WHERE key = ?");
      const batch = (bound: string) =>
        prepare(
          `SELECT key, value, checksum FROM record WHERE key ${bound} ? ORDER BY key LIMIT ${BATCH_ROWS}`,
        );
      this.#from = batch(">=");
      this.#after = batch(">");
      this.#checksum = prepare("SELECT checksum FROM record WHERE key = ?");
      this.#put = prepare(
        "INSERT INTO record VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum",
      );
      this.#delete = prepare("DELETE FROM record WHERE key = ?");
      this.#state = prepare("SELECT value, checksum FROM state WHERE id = 1");
      this.#putState = prepare("UPDATE state SET value = ?, checksum = ? WHERE id = 1");
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Returns the JSON text of a record. Throws {@link DamagedRecord} if it does not match its checksum. */
  get(key: string): string | undefined {
    const row = this.#get.get(key) as Omit<StoredRecord, "key"> | undefined;
    if (row === undefined) return undefined;
    if (row.checksum !== checksumOf(key, row.value)) throw new DamagedRecord(key);
    return row.value;
  }

  /** Returns the next records in byte order of the keys, unverified: after `last` if given, else from `first` on. */
  batch(first: string, last: string | undefined): StoredRecord[] {
    const rows = last === undefined ? this.#from.all(first) : this.#after.all(last);
    return rows as unknown as StoredRecord[];
  }

  /** Returns the state record. Throws {@link DamagedRecord} if it does not match its checksum. */
  state(): StoreState {
    const row = this.#state.get() as Omit<StoredRecord, "key"> | undefined;
    if (row === undefined || row.checksum !== checksumOf(STATE_KEY, row.value))
      throw new DamagedRecord("the state");
    return JSON.parse(row.value) as StoreState;
  }

  /** Applies a change in one transaction. Returns false, without a change, if a check does not hold. */
  commit(change: CheckedChange): boolean {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const isDone = change.check.every(([key, canonical]) => holds(this.get(key), canonical));
      if (isDone && change.set.size + change.delete.size > 0) this.#apply(change);
      this.#database.exec(isDone ? "COMMIT" : "ROLLBACK");
      return isDone;
    } catch (error) {
      this.#undo(error);
      throw error;
    }
  }

  /** Commits only the state: sets the number of commits to `sequence`, or increments it. */
  advanceSequence(sequence?: number): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const state = this.state();
      this.#writeState({ ...state, sequence: sequence ?? state.sequence + 1 });
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  /** Runs a statement. */
  run(sql: string): void {
    this.#database.exec(sql);
  }

  /** Returns the rows of a query. */
  rows(sql: string, ...values: number[]): Record<string, unknown>[] {
    return this.#database.prepare(sql).all(...values) as Record<string, unknown>[];
  }

  /** Closes the connection; the last connection also merges the write-ahead log into the database. */
  close(): void {
    this.#database.close();
  }

  #prepareFile(mayCreate: boolean, busyMs: number): void {
    const database = this.#database;
    database.exec(`PRAGMA busy_timeout = ${busyMs}`);
    database.exec("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
    if (mayCreate) database.exec("PRAGMA journal_mode = WAL");
    database.exec(`PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    if (!mayCreate) return;
    database.exec("BEGIN IMMEDIATE");
    try {
      if (database.prepare("SELECT name FROM sqlite_schema").all().length === 0) this.#makeTables();
      database.exec("COMMIT");
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #makeTables(): void {
    for (const sql of TABLES) this.#database.exec(sql);
    this.#database.exec(`PRAGMA user_version = ${TABLES_VERSION}`);
    const state = JSON.stringify({ version: TABLES_VERSION, sequence: 0, count: 0, digest: EMPTY_DIGEST });
    this.#database.prepare("INSERT INTO state VALUES (1, ?, ?)").run(state, checksumOf(STATE_KEY, state));
  }

  #apply(change: CheckedChange): void {
    const { version, sequence, ...rest } = this.state();
    let { count, digest } = rest;
    const subtract = (key: string) => {
      const row = this.#checksum.get(key) as { checksum: string } | undefined;
      if (row === undefined) return false;
      digest = toggled(digest, row.checksum);
      count--;
      return true;
    };
    for (const key of change.delete) if (subtract(key)) this.#delete.run(key);
    for (const [key, json] of change.set) {
      subtract(key);
      const checksum = checksumOf(key, json);
      this.#put.run(key, json, checksum);
      digest = toggled(digest, checksum);
      count++;
    }
    this.#writeState({ version, sequence: sequence + 1, count, digest });
  }

  #writeState(state: StoreState): void {
    const value = JSON.stringify(state);
    this.#putState.run(value, checksumOf(STATE_KEY, value));
  }

  /**
   * Rolls back a failed commit. Its pages may be in the write-ahead log, where a crash would make them effective, so an
   * empty commit overwrites them. If that fails too, the next commit does.
   */
  #undo(error: unknown): void {
    this.#rollBack();
    if (error instanceof DamagedRecord || sqliteErrorKind(error) === "busy") return;
    try {
      this.advanceSequence();
    } catch {
      // The caller throws the commit's own error.
    }
  }

  #rollBack(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite ends the transaction itself if the disk is full.
    }
  }
}
