import { messageOf, SluiceError } from "../base/errors.ts";
import { Breather } from "./breather.ts";
import { checksumOf, EMPTY_DIGEST, toggled } from "./kv-checksum.ts";
import { troubleOf } from "./kv-sqlite-error.ts";
import { RecordFile, type StoredRecord, type StoreState, TABLES, TABLES_VERSION } from "./kv-sqlite-file.ts";

/** More damaged records than this are not told apart. */
const MAX_BAD_KEYS = 10_000;
/** The file has one owner at start; a tool beside it is done in this time. */
const BUSY_MS = 5000;

/** What the check of a file found. */
export interface Finding {
  /** The file, open, where it could be opened at all. */
  readonly file: RecordFile | undefined;
  /** What is wrong, in words; undefined where nothing is. */
  readonly problem: string | undefined;
  /** The file's pages fit together, so that what was read is what is there. */
  readonly isSound: boolean;
  /** It has no tables: a crash came while it was made, or somebody emptied it. */
  readonly isBlank: boolean;
  readonly state: StoreState | undefined;
  /** Keys of records that are not as they were written. */
  readonly badKeys: ReadonlySet<string>;
  /** All other records are known to be those of the last commit: none is missing, none is of an earlier one. */
  readonly isCurrent: boolean;
}

/**
 * Looks whether a file is as it was left: its description, its pages (SQLite's own check), each record's checksum, and
 * all records together. Throws where the disk fails or the file is from a newer version; damage is a finding.
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
    if (error instanceof SluiceError || ["disk", "busy"].includes(troubleOf(error))) {
      closeQuietly(finding.file);
      throw error;
    }
    finding.isBlank = isNoTable(error);
    finding.isSound = false;
    finding.problem = messageOf(error);
  }
  return finding;
}

/** Closes a file that is given up: what it says to that changes nothing. */
export function closeQuietly(file: RecordFile | undefined): void {
  try {
    file?.close();
  } catch {
    // A damaged file may not even be closed without a complaint.
  }
}

function stateOf(file: RecordFile): StoreState | undefined {
  let state: StoreState;
  try {
    state = file.state();
  } catch (error) {
    if (troubleOf(error) !== "other") throw error;
    return undefined; // Which is one of the problems that are told.
  }
  if (state.version <= TABLES_VERSION) return state;
  throw new SluiceError(
    "bad_configuration",
    `the records were written by a newer Sluice (tables ${state.version}, this one knows ${TABLES_VERSION}); use that one`,
  );
}

function structureProblem(file: RecordFile, state: StoreState | undefined): string | undefined {
  const tables = file.rows("SELECT sql FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  if (JSON.stringify(tables.map(({ sql }) => sql)) !== JSON.stringify(TABLES)) {
    return "the description of its tables is damaged";
  }
  const version = file.rows("PRAGMA user_version")[0]?.user_version;
  if (version !== (state?.version ?? TABLES_VERSION)) return "its version is damaged";
  const answer = file.rows("PRAGMA integrity_check(1)")[0]?.integrity_check;
  return answer === "ok" ? undefined : String(answer).split("\n").slice(-1)[0];
}

interface Content {
  readonly count: number;
  /** Of the checksums as they lie there, those of damaged records too. */
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

/** All records as they lie there, in the order of their keys; lets others have the event loop. */
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
  if (found.badKeys.size > 0) return `${found.badKeys.size} records are not as they were written`;
  if (state === undefined) return "what it says about itself is damaged";
  if (found.count !== state.count) return `it has ${found.count} records, expected ${state.count}`;
  return found.digest === state.digest ? undefined : "its records are not those that it should have";
}

/** Where only the state is damaged, it is the damage that was found: there is no reason to doubt the records. */
function isCurrent(found: Content, state: StoreState | undefined): boolean {
  if (found.badKeys.size === MAX_BAD_KEYS) return false;
  if (state === undefined) return found.badKeys.size === 0;
  return found.count === state.count && found.digest === state.digest;
}

/** A file that reads well and cannot be written to is damaged too; a full disk is no damage. */
function writeOnce(file: RecordFile, state: StoreState | undefined): void {
  try {
    file.countOn(state?.sequence);
  } catch (error) {
    if (troubleOf(error) !== "full") throw error;
  }
}

function isNoTable(error: unknown): boolean {
  return /no such table: record/.test(messageOf(error));
}
