/** A bug of ours, never of a peer or a user. Nobody catches it. */
export class BugError extends Error {
  override readonly name = "BugError";
}

/** Throws a {@link BugError} unless `condition` holds. For what only our own code can get wrong. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new BugError(message);
}

/** Marks a branch that the types say cannot be reached. */
export function unreachable(value: never): never {
  throw new BugError(`unreachable: ${String(value)}`);
}
