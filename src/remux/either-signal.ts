/** A signal of two, until it is released. */
export interface EitherSignal {
  readonly signal: AbortSignal;
  /** Takes the listeners off both; the signal then fires no more. */
  release(): void;
}

/**
 * A signal that fires with the first of two. Not `AbortSignal.any`: what hangs on a signal that lives as long as a film or
 * a session must go when its request does, and not all runtimes let it go.
 */
export function eitherSignal(a: AbortSignal, b: AbortSignal): EitherSignal {
  const abort = new AbortController();
  const fromA = () => fire(a);
  const fromB = () => fire(b);
  const release = () => {
    a.removeEventListener("abort", fromA);
    b.removeEventListener("abort", fromB);
  };
  const fire = (first: AbortSignal) => {
    release();
    abort.abort(first.reason);
  };
  if (a.aborted) fire(a);
  else if (b.aborted) fire(b);
  else {
    a.addEventListener("abort", fromA, { once: true });
    b.addEventListener("abort", fromB, { once: true });
  }
  return { signal: abort.signal, release };
}

/** Does `work` under a signal that fires with the first of two; nothing hangs on either afterwards. */
export async function underEither<T>(
  a: AbortSignal | undefined,
  b: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (!a) return work(b);
  const either = eitherSignal(a, b);
  try {
    return await work(either.signal);
  } finally {
    either.release();
  }
}
