import { messageOf, SluiceError } from "../base/errors.ts";

/** SQLite needs this much for its write-ahead log and shared memory file. */
const MIN_OPEN_BYTES = 256 * 1024;

type SqliteErrorKind = "busy" | "full" | "disk" | "other";

/** Primary result codes (https://sqlite.org/rescode.html), and message patterns for Deno, which gives no code. */
const KINDS: readonly (readonly [kind: SqliteErrorKind, codes: readonly number[], message: RegExp])[] = [
  ["busy", [5, 6], /\b(is locked|SQLITE_BUSY)\b/],
  ["full", [13], /database or disk is full/],
  // Out of memory, I/O error, file cannot be opened: these do not indicate damaged data.
  ["disk", [7, 10, 14], /out of memory|disk I\/O error|unable to open/],
];

/** Classifies an error that `node:sqlite` threw. */
export function sqliteErrorKind(error: unknown): SqliteErrorKind {
  const { errcode } = error as { errcode?: unknown };
  const text = messageOf(error);
  for (const [kind, codes, message] of KINDS) {
    // The low byte is the primary result code.
    if (typeof errcode === "number" ? codes.includes(errcode & 0xff) : message.test(text)) return kind;
  }
  return "other";
}

/**
 * Converts an error of opening the store in `folder` to a `SluiceError` that names the folder. `freeBytes` is the free
 * space of its disk: on a full one SQLite reports "disk I/O error" if it cannot grow its shared memory file.
 */
export function asOpenError(error: unknown, folder: string, freeBytes: number | undefined): unknown {
  const kind = error instanceof SluiceError ? "other" : sqliteErrorKind(error);
  if (kind === "full" || (kind === "disk" && freeBytes !== undefined && freeBytes < MIN_OPEN_BYTES))
    return new SluiceError("disk_full", "the disk is full", { cause: error });
  if (kind !== "disk") return error;
  const message = `cannot open the database in ${folder}: ${messageOf(error)}`;
  return new SluiceError("bad_parameter", message, { cause: error });
}

/** Converts SQLite's "disk full" error to `disk_full`; returns every other error unchanged. */
export function asStoreError(error: unknown): unknown {
  if (sqliteErrorKind(error) !== "full") return error;
  return new SluiceError("disk_full", "the disk is full", { cause: error });
}
