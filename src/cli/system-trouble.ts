/** What the system refuses to do with a file or folder, in words. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: "this user may not",
  EPERM: "this user may not",
  EROFS: "the disk can only be read",
  ENOTDIR: "a file is where a folder should be",
  EEXIST: "a file is where a folder should be",
  EISDIR: "a folder is where a file should be",
  ENOENT: "it is not there, and cannot be made",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open; see ulimit -n",
  EIO: "the disk does not answer as it should",
};

/**
 * One line for a failure of the machine's files that nobody had other words for: most likely the data folder is a place where nothing can be
 * kept. Undefined for anything else, which is a bug.
 */
export function systemTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("path" in error)) return undefined;
  const { code, path } = error;
  const reason = typeof code === "string" && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  if (reason === undefined || typeof path !== "string") return undefined;
  return `cannot use ${path}: ${reason} (${code}); where it is of the data folder, --data-dir chooses another`;
}
