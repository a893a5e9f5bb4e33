import { messageOf } from "../base/errors.ts";
import { files } from "./files.ts";
import { EMPTY_DIGEST, toggled } from "./kv-checksum.ts";
import { finishSwap, type Places } from "./kv-places.ts";
import { Rebuild } from "./kv-rebuild.ts";
import { wholeRecords } from "./kv-salvage.ts";
import { readSnapshot } from "./kv-snapshot.ts";
import { closeQuietly, examine, type Finding } from "./kv-sqlite-check.ts";
import { RecordFile } from "./kv-sqlite-file.ts";
import type { TextReport } from "./kv-text.ts";
import { readTip } from "./kv-tip.ts";

const BUSY_MS = 200;

/** What was found at start, before any of it is used. */
interface Found {
  readonly places: Places;
  readonly finding: Finding;
  /** Of the snapshot; undefined where there is none. */
  readonly kept: TextReport | undefined;
  /** How many commits were acknowledged, where that is known. */
  readonly tip: number | undefined;
  readonly warn: (message: string) => void;
}

/** Where the records of a repaired store came from. */
interface Sources {
  readonly fromDatabase: number;
  readonly fromSnapshot: number;
  /** All that the damaged file should have had was found in it. */
  readonly isComplete: boolean;
}

/** The file of records, whole, and how many commits its snapshot holds (undefined: it must be made anew). */
export interface Recovered {
  readonly file: RecordFile;
  readonly snapshotSequence: number | undefined;
}

/**
 * Opens the records of a folder that nobody else has open. A damaged file is replaced by one made of what is whole in
 * it and of the snapshot, is kept beside, and told to `warn`. A crash at any point begins this again from the same
 * files: nothing is removed before what takes its place is durable. Rejects where the disk fails or is full.
 */
export async function openRecovered(places: Places, warn: (message: string) => void): Promise<Recovered> {
  if (await finishSwap(places)) {
    warn(
      `${places.database} was being replaced when the last run ended: that is done now, and the former file is kept beside`,
    );
  }
  const isThere = (await files.stat(places.database)) !== undefined;
  const kept = await readSnapshot(places, () => {}).catch((error: unknown) => {
    // Where the database is whole it is not needed.
    warn(`${places.snapshot} cannot be read: ${messageOf(error)}`);
    return UNREADABLE;
  });
  const tip = tipOf(places, warn);
  if (!isThere && kept === undefined && tip === undefined)
    return { file: fresh(places), snapshotSequence: undefined };
  const finding: Finding = isThere ? await examine(places.database) : MISSING;
  if (finding.isBlank && kept === undefined && tip === undefined) {
    closeQuietly(finding.file);
    return { file: fresh(places), snapshotSequence: undefined };
  }
  const found: Found = { places, finding, kept, tip, warn };
  if (finding.problem === undefined && !isBehindSnapshot(found)) return healthy(found);
  await repair(found);
  return { file: fresh(places), snapshotSequence: undefined };
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

function fresh(places: Places): RecordFile {
  return new RecordFile(places.database, { mayCreate: true, busyMs: BUSY_MS });
}

function tipOf({ tip }: Places, warn: (message: string) => void): number | undefined {
  try {
    return readTip(tip);
  } catch (error) {
    warn(`${tip} cannot be read: ${messageOf(error)}`);
    return undefined;
  }
}

/** The snapshot cannot be newer, unless the database has lost its last commits. */
function isBehindSnapshot({ finding, kept }: Found): boolean {
  return kept?.isWhole === true && (finding.state?.sequence ?? 0) < (kept.sequence ?? 0);
}

async function healthy({ places, finding, kept, tip = 0, warn }: Found): Promise<Recovered> {
  const sequence = finding.state?.sequence ?? 0;
  if (tip > sequence) {
    warn(`${places.database} has lost the last ${tip - sequence} changes: the end of its log is damaged`);
    await files.remove(places.tip); // Told once.
  }
  if (kept?.isWhole === false) {
    warn(
      `${places.snapshot} is damaged (${kept.badLines} lines); the records are whole, and it is made anew`,
    );
  }
  closeQuietly(finding.file);
  return { file: fresh(places), snapshotSequence: kept?.isWhole ? kept.sequence : undefined };
}

async function repair(found: Found): Promise<void> {
  const { places, finding, kept, tip, warn } = found;
  const sources = await rebuild(found);
  closeQuietly(finding.file);
  await finishSwap(places);
  const problem = finding.problem ?? "its last changes are lost";
  const lost = sources.isComplete ? "nothing is lost" : "changes since the snapshot may be lost";
  const without =
    kept === undefined
      ? " (there was none)"
      : kept.isWhole
        ? ""
        : ` (${kept.badLines} lines of it are damaged)`;
  warn(
    `${places.database} was damaged: ${problem}. Restored ${sources.fromDatabase} records from it and ` +
      `${sources.fromSnapshot} from the snapshot${without}; ${lost}. The damaged file is kept beside it`,
  );
  const sequence = Math.max(finding.state?.sequence ?? 0, kept?.isWhole ? (kept.sequence ?? 0) : 0);
  if (tip !== undefined && tip > sequence)
    warn(`${places.database} has lost the last ${tip - sequence} changes`);
}

/** Makes the file that takes the damaged one's place, and makes it ready. */
async function rebuild(found: Found): Promise<Sources> {
  const { places, finding, kept, tip = 0 } = found;
  const next = 1 + Math.max(tip, finding.state?.sequence ?? 0, kept?.isWhole ? (kept.sequence ?? 0) : 0);
  let building = await Rebuild.begin(places);
  try {
    let sources: Sources | undefined;
    if (!isBehindSnapshot(found)) sources = await fromDatabase(found, building);
    if (sources === undefined) {
      await building.drop();
      building = await Rebuild.begin(places);
      const fromSnapshot = await fill(found, building, () => true);
      sources = { fromDatabase: 0, fromSnapshot, isComplete: false };
    }
    await building.finish(next);
    return sources;
  } catch (error) {
    await building.drop();
    closeQuietly(finding.file);
    throw error;
  }
}

/**
 * Takes what is whole in the damaged file, and from the snapshot what is not. Undefined where nobody knows whether that
 * is all, and the snapshot is whole: a state that once was is better than one that never was.
 */
async function fromDatabase(found: Found, building: Rebuild): Promise<Sources | undefined> {
  const { finding, kept } = found;
  holdOff(finding.file);
  const isComplete = await hasAll(finding);
  const isCurrent = finding.isSound && finding.isCurrent;
  if (!isComplete && !isCurrent && kept?.isWhole) return undefined;
  if (finding.file !== undefined) {
    for await (const record of wholeRecords(finding.file)) await building.add(record);
  }
  const { count } = building.state;
  if (isComplete) return { fromDatabase: count, fromSnapshot: 0, isComplete };
  const fromSnapshot = await fill(found, building, (key) => !isCurrent || finding.badKeys.has(key));
  return { fromDatabase: count, fromSnapshot, isComplete };
}

/** Whether all that should be there can be read: then only the pages around it are damaged. */
async function hasAll({ file, state }: Finding): Promise<boolean> {
  if (file === undefined || state === undefined) return false;
  let count = 0;
  let digest = EMPTY_DIGEST;
  for await (const { checksum } of wholeRecords(file)) {
    count++;
    digest = toggled(digest, checksum);
  }
  return count === state.count && digest === state.digest;
}

/** Adds what the snapshot has of the records that are wanted and not there. */
async function fill(
  { places }: Found,
  building: Rebuild,
  isWanted: (key: string) => boolean,
): Promise<number> {
  let filled = 0;
  await readSnapshot(places, async (line) => {
    if (!("key" in line) || !isWanted(line.key) || building.has(line.key)) return;
    await building.add(line);
    filled++;
  });
  return filled;
}

/** Tools beside wait meanwhile: what they write to a file that is being replaced would be lost. */
function holdOff(file: RecordFile | undefined): void {
  try {
    file?.run("BEGIN IMMEDIATE");
  } catch {
    // A file that is too damaged to be locked takes no writes either.
  }
}
