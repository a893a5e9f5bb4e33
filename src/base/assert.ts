/** A bug in this program, never the fault of a peer or a user. No code catches it. */
export class BugError extends Error {
  override readonly name = "BugError";
}

/** Throws a {@link BugError} unless `condition` holds. For conditions that only a bug in this program can break. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new BugError(message);
}
