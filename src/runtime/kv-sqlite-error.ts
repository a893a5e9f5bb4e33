import { messageOf, SluiceError } from "../base/errors.ts";

/** What kind of trouble SQLite reports. */
export type SqliteTrouble = "busy" | "full" | "disk" | "other";

/** The primary result codes (https://sqlite.org/rescode.html), and the texts for runtimes that give no code (Deno). */
const TROUBLES: readonly (readonly [trouble: SqliteTrouble, codes: readonly number[], text: RegExp])[] = [
  ["busy", [5, 6], /\b(is locked|SQLITE_BUSY)\b/],
  ["full", [13], /database or disk is full/],
  // Out of memory, an error of the disk, a file that cannot be opened: these say nothing about what is on the disk.
  ["disk", [7, 10, 14], /out of memory|disk I\/O error|unable to open/],
];

/** The kind of an error that `node:sqlite` threw. */
export function troubleOf(error: unknown): SqliteTrouble {
  const { errcode } = error as { errcode?: unknown };
  const text = messageOf(error);
  for (const [trouble, codes, words] of TROUBLES) {
    // The low byte is the primary code; the rest says more about it.
    if (typeof errcode === "number" ? codes.includes(errcode & 0xff) : words.test(text)) return trouble;
  }
  return "other";
}

/** The error as the contract has it: a full disk is `disk_full`, all else is told as it came. */
export function asStoreError(error: unknown): unknown {
  if (troubleOf(error) !== "full") return error;
  return new SluiceError("disk_full", "the disk is full", { cause: error });
}
