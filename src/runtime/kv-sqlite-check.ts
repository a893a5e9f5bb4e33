import { messageOf, SluiceError } from "../base/errors.ts";
import { Breather } from "./breather.ts";
import { checksumOf, EMPTY_DIGEST, toggled } from "./kv-checksum.ts";
import { sqliteErrorKind } from "./kv-sqlite-error.ts";
import { RecordFile, type StoredRecord, type StoreState, TABLES, TABLES_VERSION } from "./kv-sqlite-file.ts";

/** Beyond this number the keys of damaged records are not collected. */
const MAX_BAD_KEYS = 10_000;
/** At start the file has one owner; a tool that uses it finishes within this time. */
const BUSY_MS = 5000;

/** The result of checking a file. */
export interface Finding {
  /** The open file, if it could be opened. */
  readonly file: RecordFile | undefined;
  /** What is wrong; undefined if nothing is. */
  readonly problem: string | undefined;
  /** The file's pages are consistent, so all records could be read. */
  readonly isSound: boolean;
  /** The file has no tables: a crash interrupted its creation, or the user emptied it. */
  readonly isBlank: boolean;
  readonly state: StoreState | undefined;
  /** Keys of damaged records. */
  readonly badKeys: ReadonlySet<string>;
  /** Apart from `badKeys` the records are those of the last commit: none is missing or outdated. */
  readonly isCurrent: boolean;
}

/**
 * Checks a file for damage: its schema, its pages (SQLite's integrity check), the checksum of each record, and the digest
 * of all records. Throws if the disk fails or a newer version wrote the file; reports damage as a finding.
 */
export async function examine(path: string): Promise<Finding> {
  const finding: { -readonly [K in keyof Finding]: Finding[K] } = {
    file: undefined,
    problem: undefined,
    isSound: false,
    isBlank: false,
    state: undefined,
    badKeys: new Set(),
    isCurrent: false,
  };
  try {
    finding.file = new RecordFile(path, { mayCreate: false, busyMs: BUSY_MS });
    finding.state = stateOf(finding.file);
    finding.problem = structureProblem(finding.file, finding.state);
    if (finding.problem !== undefined) return finding;
    const found = await readAll(finding.file);
    finding.isSound = true;
    finding.badKeys = found.badKeys;
    finding.isCurrent = isCurrent(found, finding.state);
    finding.problem = contentProblem(found, finding.state);
    if (finding.problem === undefined) writeOnce(finding.file, finding.state);
  } catch (error) {
    if (error instanceof SluiceError || ["disk", "busy"].includes(sqliteErrorKind(error))) {
      closeQuietly(finding.file);
      throw error;
    }
    finding.isBlank = isNoTable(error);
    finding.isSound = false;
    finding.problem = messageOf(error);
  }
  return finding;
}

/** Closes a file and ignores errors, which closing a damaged file may cause. */
export function closeQuietly(file: RecordFile | undefined): void {
  try {
    file?.close();
  } catch {}
}

function stateOf(file: RecordFile): StoreState | undefined {
  let state: StoreState;
  try {
    state = file.state();
  } catch (error) {
    if (sqliteErrorKind(error) !== "other") throw error;
    return undefined; // `contentProblem` reports it.
  }
  if (state.version <= TABLES_VERSION) return state;
  throw new SluiceError(
    "bad_configuration",
    `the records were written by a newer Sluice (table version ${state.version}, supported: ${TABLES_VERSION}); use that version`,
  );
}

function structureProblem(file: RecordFile, state: StoreState | undefined): string | undefined {
  const tables = file.rows("SELECT sql FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  if (JSON.stringify(tables.map(({ sql }) => sql)) !== JSON.stringify(TABLES)) {
    return "its schema is damaged";
  }
  const version = file.rows("PRAGMA user_version")[0]?.user_version;
  if (version !== (state?.version ?? TABLES_VERSION)) return "its version number is damaged";
  const result = file.rows("PRAGMA integrity_check(1)")[0]?.integrity_check;
  return result === "ok" ? undefined : String(result).split("\n").slice(-1)[0];
}

interface Content {
  readonly count: number;
  /** Digest of the stored checksums, including those of damaged records. */
  readonly digest: string;
  readonly badKeys: ReadonlySet<string>;
}

async function readAll(file: RecordFile): Promise<Content> {
  const badKeys = new Set<string>();
  let count = 0;
  let digest = EMPTY_DIGEST;
  for await (const { key, value, checksum } of inKeyOrder(file)) {
    count++;
    digest = toggled(digest, checksum);
    if (checksum !== checksumOf(key, value) && badKeys.size < MAX_BAD_KEYS) badKeys.add(key);
  }
  return { count, digest, badKeys };
}

/** Yields all records unverified, in key order; yields to the event loop between batches. */
export async function* inKeyOrder(file: RecordFile): AsyncGenerator<StoredRecord> {
  const breather = new Breather();
  for (let last: string | undefined; ; ) {
    const batch = file.batch("", last);
    for (const record of batch) yield record;
    const next = batch.at(-1)?.key;
    if (next === undefined || next === last) return;
    last = next;
    await breather.breathe();
  }
}

function contentProblem(found: Content, state: StoreState | undefined): string | undefined {
  if (found.badKeys.size > 0) return `${found.badKeys.size} records are damaged`;
  if (state === undefined) return "its state record is damaged";
  if (found.count !== state.count) return `it has ${found.count} records, expected ${state.count}`;
  return found.digest === state.digest ? undefined : "its records are not those of the last commit";
}

/** If only the state record is damaged, the records count as current. */
function isCurrent(found: Content, state: StoreState | undefined): boolean {
  if (found.badKeys.size === MAX_BAD_KEYS) return false;
  if (state === undefined) return found.badKeys.size === 0;
  return found.count === state.count && found.digest === state.digest;
}

/** Detects a file that can be read but not written. A full disk is not damage. */
function writeOnce(file: RecordFile, state: StoreState | undefined): void {
  try {
    file.advanceSequence(state?.sequence);
  } catch (error) {
    if (sqliteErrorKind(error) !== "full") throw error;
  }
}

function isNoTable(error: unknown): boolean {
  return /no such table: record/.test(messageOf(error));
}
