import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { checksumOf, EMPTY_DIGEST, toggled } from "./kv-checksum.ts";
import { troubleOf } from "./kv-sqlite-error.ts";
import { type CheckedChange, holds } from "./kv-values.ts";

/** The version of the tables, in `user_version` and in the state. */
export const TABLES_VERSION = 1;

/** The tables exactly as the file must describe them: a flipped bit in the description is damage like any other. */
export const TABLES: readonly string[] = [
  "CREATE TABLE record (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, checksum TEXT NOT NULL) STRICT",
  "CREATE TABLE state (id INTEGER PRIMARY KEY, value TEXT NOT NULL, checksum TEXT NOT NULL) STRICT",
];

/** A write-ahead log of 1 MiB is put into the database: often enough that doing it takes a few milliseconds. */
const CHECKPOINT_PAGES = 256;
/** Rows that one query brings, at most 60 KiB each. */
const BATCH_ROWS = 64;
const STATE_KEY = "state";

/** One record as it lies in the file. */
export interface StoredRecord {
  readonly key: string;
  readonly value: string;
  readonly checksum: string;
}

/** What the file says about itself; it changes with every commit, in the same transaction. */
export interface StoreState {
  readonly version: number;
  /** How many commits there were. */
  readonly sequence: number;
  readonly count: number;
  /** All records' checksums together. */
  readonly digest: string;
}

/** A record, or the state, is not as it was written. */
export class DamagedRecord extends Error {
  override readonly name = "DamagedRecord";
}

/** One connection to a file of records. Every call is synchronous and short; nothing here waits or looks for damage. */
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

  /** Opens the file; makes it, with its tables, where `mayCreate` and it has none. Throws what SQLite throws. */
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

  /** The JSON text of a record. Throws {@link DamagedRecord} rather than give one that is not as it was written. */
  get(key: string): string | undefined {
    const row = this.#get.get(key) as Omit<StoredRecord, "key"> | undefined;
    if (row === undefined) return undefined;
    if (row.checksum !== checksumOf(key, row.value)) throw damagedRecord(key);
    return row.value;
  }

  /** The next few records, in the order of their keys' bytes, as they lie there: after `last`, or from `first` on. */
  batch(first: string, last: string | undefined): StoredRecord[] {
    const rows = last === undefined ? this.#from.all(first) : this.#after.all(last);
    return rows as unknown as StoredRecord[];
  }

  /** What the file says about itself. Throws {@link DamagedRecord} where that cannot be believed. */
  state(): StoreState {
    const row = this.#state.get() as Omit<StoredRecord, "key"> | undefined;
    if (row === undefined || row.checksum !== checksumOf(STATE_KEY, row.value))
      throw damagedRecord("the state");
    return JSON.parse(row.value) as StoreState;
  }

  /** Does a change in one transaction; false, and nothing done, where a check does not hold. */
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

  /** Sets the count of commits, or counts one more: a commit of nothing, which shows that the file can be written to. */
  countOn(sequence?: number): void {
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

  /** Runs one statement as it is: what checks, repairs and snapshots need besides. */
  run(sql: string): void {
    this.#database.exec(sql);
  }

  /** The rows of a query as they are. */
  rows(sql: string, ...values: number[]): Record<string, unknown>[] {
    return this.#database.prepare(sql).all(...values) as Record<string, unknown>[];
  }

  /** Puts the write-ahead log into the database and removes it, where nobody else has the file open. */
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
    const forget = (key: string) => {
      const row = this.#checksum.get(key) as { checksum: string } | undefined;
      if (row === undefined) return false;
      digest = toggled(digest, row.checksum);
      count--;
      return true;
    };
    for (const key of change.delete) if (forget(key)) this.#delete.run(key);
    for (const [key, json] of change.set) {
      forget(key);
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
   * After a commit that failed: its pages may lie in the write-ahead log all the same, and a crash would bring them to
   * life. A small commit of nothing takes their place at once; where that fails too, the next one does.
   */
  #undo(error: unknown): void {
    this.#rollBack();
    if (error instanceof DamagedRecord || troubleOf(error) === "busy") return;
    try {
      this.countOn();
    } catch {
      // The error that is thrown is the one of the commit itself.
    }
  }

  #rollBack(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has ended the transaction by itself, as it does when the disk is full.
    }
  }
}

function damagedRecord(name: string): DamagedRecord {
  return new DamagedRecord(`${name} is damaged on disk; start the engine again, and it is repaired`);
}
