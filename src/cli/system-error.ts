import { sep } from "node:path";

/** Reasons for which the system refuses an operation on a file or folder, by error code (POSIX). */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOTDIR: "a file exists where a folder is expected",
  EEXIST: "a file exists where a folder is expected",
  EISDIR: "a folder exists where a file is expected",
  ENOENT: "it does not exist and cannot be created",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open; raise the limit (ulimit -n)",
  EIO: "the disk reports an input/output error",
};

/**
 * Describes a failed file operation in one line: the path, the reason and what to do. `dataDir` is the data folder of the
 * settings, if they have been read. Returns undefined for any other error: that is a bug.
 */
export function systemError(error: unknown, dataDir: string | undefined): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("path" in error)) return undefined;
  const { code, path } = error;
  const reason = typeof code === "string" && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  if (reason === undefined || typeof path !== "string") return undefined;
  const isData = dataDir !== undefined && (path === dataDir || path.startsWith(dataDir + sep));
  const text = `cannot use ${path}: ${reason} (${code})`;
  return isData ? `${text}. Choose a writable data folder with --data-dir.` : text;
}
