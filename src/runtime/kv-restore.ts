import { SluiceError } from "../base/errors.ts";
import { files } from "./files.ts";
import { finishSwap, type Places } from "./kv-places.ts";
import { Rebuild } from "./kv-rebuild.ts";
import { readSnapshot, writeSnapshot } from "./kv-snapshot.ts";
import { closeQuietly, examine } from "./kv-sqlite-check.ts";
import { RecordFile } from "./kv-sqlite-file.ts";
import { readText, type TextLine } from "./kv-text.ts";
import { readTip } from "./kv-tip.ts";

/** Reads a whole backup and refuses one that is not as it was written, before anything is changed. */
export async function verifyBackup(backup: AsyncIterable<Uint8Array>): Promise<void> {
  const report = await readText(backup, () => {});
  if (report.isWhole) return;
  const what =
    report.sequence === undefined
      ? "it does not begin like one"
      : `${report.badLines} lines are damaged or missing`;
  throw new SluiceError("bad_parameter", `this is no whole backup of a Sluice: ${what}; nothing was changed`);
}

/**
 * Puts the records of a backup in the place of all that are there, which are kept beside. A crash leaves either the old
 * ones or the new ones. The caller holds the lock.
 */
export async function restoreInto(
  places: Places,
  backup: AsyncIterable<Uint8Array>,
  overwrite: boolean,
  found: (line: TextLine) => Promise<void>,
): Promise<{ readonly records: number }> {
  await finishSwap(places);
  const sequence = await sequenceThere(places, overwrite);
  const building = await Rebuild.begin(places);
  let records = 0;
  try {
    const report = await readText(backup, async (line) => {
      await found(line);
      if (!("key" in line)) return;
      await building.add(line);
      records++;
    });
    if (!report.isWhole)
      throw new SluiceError("bad_parameter", "the backup changed while it was read; nothing was changed");
    await building.finish(1 + Math.max(sequence, report.sequence ?? 0));
  } catch (error) {
    await building.drop();
    throw error;
  }
  await finishSwap(places);
  // The database must have its log before the snapshot can be read beside it.
  new RecordFile(places.database, { mayCreate: true, busyMs: 0 }).close();
  await writeSnapshot(places);
  return { records };
}

/** How far the store that is there has counted, so that the new one is newer. Throws where it may not be replaced. */
async function sequenceThere(places: Places, overwrite: boolean): Promise<number> {
  const kept = await readSnapshot(places, () => {});
  const tip = readTip(places.tip) ?? 0;
  const isThere = (await files.stat(places.database)) !== undefined;
  const finding = isThere ? await examine(places.database) : undefined;
  closeQuietly(finding?.file);
  const isEmpty = (finding === undefined || finding.state?.count === 0) && (kept?.lines ?? 0) === 0;
  if (!isEmpty && !overwrite) {
    throw new SluiceError(
      "bad_configuration",
      "there are records already; --force replaces them, and keeps them beside",
    );
  }
  return Math.max(tip, finding?.state?.sequence ?? 0, kept?.isWhole ? (kept.sequence ?? 0) : 0);
}
