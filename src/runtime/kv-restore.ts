import { SluiceError } from "../base/errors.ts";
import { files } from "./files.ts";
import { finishSwap, type StorePaths } from "./kv-paths.ts";
import { Rebuild } from "./kv-rebuild.ts";
import { readSnapshot, writeSnapshot } from "./kv-snapshot.ts";
import { closeQuietly, examine } from "./kv-sqlite-check.ts";
import { RecordFile } from "./kv-sqlite-file.ts";
import { readText, type TextLine } from "./kv-text.ts";
import { readTip } from "./kv-tip.ts";

/** Reads a backup to its end, and calls `onLine` for each intact line; throws `bad_parameter` if it is damaged or incomplete. */
export async function verifyBackup(
  backup: AsyncIterable<Uint8Array>,
  onLine: (line: TextLine) => void | Promise<void> = () => {},
): Promise<void> {
  const report = await readText(backup, onLine);
  if (report.isWhole) return;
  const what =
    report.sequence === undefined
      ? "its first line is not the header of one"
      : `${report.badLines} lines are damaged or missing`;
  throw new SluiceError(
    "bad_parameter",
    `this is not a complete Sluice backup: ${what}; nothing was changed`,
  );
}

/**
 * Replaces all records by those of a backup and keeps the old database as a copy. A crash leaves either the old records
 * or the new ones. The caller holds the lock. `onLine` is called for each line of the backup.
 */
export async function restoreInto(
  paths: StorePaths,
  backup: AsyncIterable<Uint8Array>,
  overwrite: boolean,
  onLine: (line: TextLine) => Promise<void>,
): Promise<{ readonly records: number }> {
  await finishSwap(paths);
  const sequence = await currentSequence(paths, overwrite);
  const building = await Rebuild.begin(paths);
  let records = 0;
  try {
    const report = await readText(backup, async (line) => {
      await onLine(line);
      if (!("key" in line)) return;
      await building.add(line);
      records++;
    });
    if (!report.isWhole)
      throw new SluiceError("bad_parameter", "the backup changed while it was read; no record was changed");
    await building.finish(1 + Math.max(sequence, report.sequence ?? 0));
  } catch (error) {
    await building.discard();
    throw error;
  }
  await finishSwap(paths);
  // Creates the write-ahead log, without which a second connection cannot read the database.
  new RecordFile(paths.database, { mayCreate: true, busyMs: 0 }).close();
  await writeSnapshot(paths);
  return { records };
}

/** Returns the number of commits of the existing store. Throws `bad_configuration` if it may not be replaced. */
async function currentSequence(paths: StorePaths, overwrite: boolean): Promise<number> {
  const snapshot = await readSnapshot(paths, () => {});
  const tip = readTip(paths.tip) ?? 0;
  const exists = (await files.stat(paths.database)) !== undefined;
  const finding = exists ? await examine(paths.database) : undefined;
  closeQuietly(finding?.file);
  const isEmpty = (finding === undefined || finding.state?.count === 0) && (snapshot?.lines ?? 0) === 0;
  if (!isEmpty && !overwrite) {
    throw new SluiceError(
      "bad_configuration",
      "the store already has records; --force replaces them and keeps the old database as a copy",
    );
  }
  return Math.max(tip, finding?.state?.sequence ?? 0, snapshot?.isWhole ? (snapshot.sequence ?? 0) : 0);
}
