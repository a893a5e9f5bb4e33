import { messageOf } from "../base/errors.ts";
import { files } from "./files.ts";
import { EMPTY_DIGEST, toggled } from "./kv-checksum.ts";
import { finishSwap, type StorePaths } from "./kv-paths.ts";
import { Rebuild } from "./kv-rebuild.ts";
import { intactRecords } from "./kv-salvage.ts";
import { readSnapshot } from "./kv-snapshot.ts";
import { closeQuietly, examine, type Finding } from "./kv-sqlite-check.ts";
import { RecordFile } from "./kv-sqlite-file.ts";
import type { TextReport } from "./kv-text.ts";
import { readTip } from "./kv-tip.ts";

const BUSY_MS = 200;

/** The state of the store's files at start. */
interface Inspection {
  readonly paths: StorePaths;
  readonly finding: Finding;
  /** Report on the snapshot; undefined if there is none. */
  readonly snapshot: TextReport | undefined;
  /** The number of acknowledged commits; undefined if it is not known. */
  readonly tip: number | undefined;
  readonly warn: (message: string) => void;
}

/** The number of records that the repair took from each source. */
interface Sources {
  readonly fromDatabase: number;
  readonly fromSnapshot: number;
  /** True if the damaged file still contained all of its records. */
  readonly isComplete: boolean;
}

interface Recovered {
  readonly file: RecordFile;
  /** The number of commits that the snapshot contains; undefined if a new snapshot is needed. */
  readonly snapshotSequence: number | undefined;
}

/**
 * Opens the records of a folder whose lock the caller holds. Replaces a damaged file by one made of its intact records
 * and the snapshot, keeps the damaged file as a copy, and reports to `warn`. Safe against a crash at every step: nothing
 * is removed before its replacement is durable. Rejects if the disk fails or is full.
 */
export async function openRecovered(paths: StorePaths, warn: (message: string) => void): Promise<Recovered> {
  if (await finishSwap(paths)) {
    warn(
      `${paths.database} was being replaced when the last run ended; the replacement is finished, and the old file is kept as a copy`,
    );
  }
  const exists = (await files.stat(paths.database)) !== undefined;
  const snapshot = await readSnapshot(paths, () => {}).catch((error: unknown) => {
    // If the database is intact, the snapshot is not needed.
    warn(`${paths.snapshot} cannot be read: ${messageOf(error)}`);
    return UNREADABLE;
  });
  const tip = tipOf(paths, warn);
  if (!exists && snapshot === undefined && tip === undefined)
    return { file: openFile(paths), snapshotSequence: undefined };
  const finding: Finding = exists ? await examine(paths.database) : MISSING;
  if (finding.isBlank && snapshot === undefined && tip === undefined) {
    closeQuietly(finding.file);
    return { file: openFile(paths), snapshotSequence: undefined };
  }
  const inspection: Inspection = { paths, finding, snapshot, tip, warn };
  if (finding.problem === undefined && !isBehindSnapshot(inspection)) return openIntact(inspection);
  await repair(inspection);
  return { file: openFile(paths), snapshotSequence: undefined };
}

const MISSING: Finding = {
  file: undefined,
  problem: "it is missing",
  isSound: false,
  isBlank: true,
  state: undefined,
  badKeys: new Set(),
  isCurrent: false,
};

const UNREADABLE: TextReport = { isWhole: false, sequence: undefined, lines: 0, badLines: 0 };

function openFile(paths: StorePaths): RecordFile {
  return new RecordFile(paths.database, { mayCreate: true, busyMs: BUSY_MS });
}

function tipOf({ tip }: StorePaths, warn: (message: string) => void): number | undefined {
  try {
    return readTip(tip);
  } catch (error) {
    warn(`${tip} cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}

/** An intact snapshot is newer than the database only if the database has lost commits. */
function isBehindSnapshot({ finding, snapshot }: Inspection): boolean {
  return snapshot?.isWhole === true && (finding.state?.sequence ?? 0) < (snapshot.sequence ?? 0);
}

async function openIntact({ paths, finding, snapshot, tip = 0, warn }: Inspection): Promise<Recovered> {
  const sequence = finding.state?.sequence ?? 0;
  if (tip > sequence) {
    warn(`${paths.database} has lost the last ${tip - sequence} changes: the end of its log is damaged`);
    await files.remove(paths.tip); // Warn only once.
  }
  if (snapshot?.isWhole === false) {
    warn(
      `${paths.snapshot} is damaged (${snapshot.badLines} lines); the records are intact, and a new snapshot is written`,
    );
  }
  closeQuietly(finding.file);
  return { file: openFile(paths), snapshotSequence: snapshot?.isWhole ? snapshot.sequence : undefined };
}

async function repair(inspection: Inspection): Promise<void> {
  const { paths, finding, snapshot, tip, warn } = inspection;
  const sources = await rebuild(inspection);
  closeQuietly(finding.file);
  await finishSwap(paths);
  const problem = finding.problem ?? "its last changes are lost";
  const lost = sources.isComplete ? "nothing is lost" : "changes since the snapshot may be lost";
  const snapshotProblem =
    snapshot === undefined
      ? " (there was none)"
      : snapshot.isWhole
        ? ""
        : ` (${snapshot.badLines} lines of it are damaged)`;
  warn(
    `${paths.database} was damaged: ${problem}. Restored ${sources.fromDatabase} records from it and ` +
      `${sources.fromSnapshot} from the snapshot${snapshotProblem}; ${lost}. The damaged file is kept as a copy`,
  );
  const sequence = Math.max(finding.state?.sequence ?? 0, snapshot?.isWhole ? (snapshot.sequence ?? 0) : 0);
  if (tip !== undefined && tip > sequence)
    warn(`${paths.database} has lost the last ${tip - sequence} changes`);
}

/** Builds the replacement of the damaged file. */
async function rebuild(inspection: Inspection): Promise<Sources> {
  const { paths, finding, snapshot, tip = 0 } = inspection;
  const snapshotSequence = snapshot?.isWhole ? (snapshot.sequence ?? 0) : 0;
  const next = 1 + Math.max(tip, finding.state?.sequence ?? 0, snapshotSequence);
  let building = await Rebuild.begin(paths);
  try {
    let sources: Sources | undefined;
    if (!isBehindSnapshot(inspection)) sources = await addIntactRecords(inspection, building);
    if (sources === undefined) {
      await building.discard();
      building = await Rebuild.begin(paths);
      const fromSnapshot = await addFromSnapshot(inspection, building, () => true);
      sources = { fromDatabase: 0, fromSnapshot, isComplete: false };
    }
    await building.finish(next);
    return sources;
  } catch (error) {
    await building.discard();
    closeQuietly(finding.file);
    throw error;
  }
}

/**
 * Adds the intact records of the damaged file, and the remaining records from the snapshot. Returns undefined if the result may
 * mix two states and the snapshot is intact: an older consistent state is better than one that never existed.
 */
async function addIntactRecords(inspection: Inspection, building: Rebuild): Promise<Sources | undefined> {
  const { finding, snapshot } = inspection;
  blockWriters(finding.file);
  const isComplete = await hasAllRecords(finding);
  const isCurrent = finding.isSound && finding.isCurrent;
  if (!isComplete && !isCurrent && snapshot?.isWhole) return undefined;
  if (finding.file !== undefined) {
    for await (const record of intactRecords(finding.file)) await building.add(record);
  }
  const { count } = building.state;
  if (isComplete) return { fromDatabase: count, fromSnapshot: 0, isComplete };
  const isWanted = (key: string) => !isCurrent || finding.badKeys.has(key);
  const fromSnapshot = await addFromSnapshot(inspection, building, isWanted);
  return { fromDatabase: count, fromSnapshot, isComplete };
}

/** Returns true if every record of the last commit can be read. Damage is then limited to other parts of the file. */
async function hasAllRecords({ file, state }: Finding): Promise<boolean> {
  if (file === undefined || state === undefined) return false;
  let count = 0;
  let digest = EMPTY_DIGEST;
  for await (const { checksum } of intactRecords(file)) {
    count++;
    digest = toggled(digest, checksum);
  }
  return count === state.count && digest === state.digest;
}

/** Adds the wanted records that are missing so far. Returns their number. */
async function addFromSnapshot(
  { paths }: Inspection,
  building: Rebuild,
  isWanted: (key: string) => boolean,
): Promise<number> {
  let added = 0;
  await readSnapshot(paths, async (line) => {
    if (!("key" in line) || !isWanted(line.key) || building.has(line.key)) return;
    await building.add(line);
    added++;
  });
  return added;
}

/** Blocks writes of other processes, because changes to a file that is being replaced would be lost. */
function blockWriters(file: RecordFile | undefined): void {
  try {
    file?.run("BEGIN IMMEDIATE");
  } catch {
    // If the file is too damaged to be locked, other processes cannot write to it either.
  }
}
