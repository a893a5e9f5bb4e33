import type { AbortSignalLike } from "../base/byte-source.ts";

/**
 * Calls `run` once when `signal` fires, or at once if it has fired already. Returns a function that removes the listener.
 * Without a signal nothing happens.
 */
export function onAbort(signal: AbortSignalLike | undefined, run: () => void): () => void {
  if (!signal) return () => {};
  if (signal.aborted) {
    run();
    return () => {};
  }
  signal.addEventListener("abort", run, { once: true });
  return () => signal.removeEventListener("abort", run);
}

/** Returns a signal that has fired if `a` or `b` has. It adds no listener of its own, so it needs no release. */
export function eitherSignal(a: AbortSignalLike | undefined, b: AbortSignalLike): AbortSignalLike {
  if (!a) return b;
  return {
    get aborted() {
      return a.aborted || b.aborted;
    },
    get reason() {
      return a.aborted ? a.reason : b.reason;
    },
    addEventListener(...listener) {
      a.addEventListener(...listener);
      b.addEventListener(...listener);
    },
    removeEventListener(...listener) {
      a.removeEventListener(...listener);
      b.removeEventListener(...listener);
    },
  };
}

/** Settles as `promise` does, or rejects with the signal's reason if the signal fires first. Leaves no listener behind. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignalLike | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const release = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(release);
  });
}

/** An abort controller that also fires when one of the signals it follows fires. */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** Stops following the other signals. */
  release(): void;
}

/**
 * Makes an abort controller that follows `signals` until it is released. `AbortSignal.any` is not used because some runtimes
 * keep its listeners for the lifetime of the longest signal, here a file or a session.
 */
export function linkedAbort(...signals: readonly (AbortSignal | undefined)[]): LinkedAbort {
  const controller = new AbortController();
  const releases: (() => void)[] = [];
  const release = () => {
    for (const stop of releases.splice(0)) stop();
  };
  for (const signal of signals) {
    if (controller.signal.aborted) break;
    releases.push(
      onAbort(signal, () => {
        release();
        controller.abort(signal?.reason);
      }),
    );
  }
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), release };
}

/** Runs `work` with a signal that fires when `a` or `b` fires; removes its listeners from both afterwards. */
export async function withLinkedAbort<T>(
  a: AbortSignal | undefined,
  b: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const linked = linkedAbort(a, b);
  try {
    return await work(linked.signal);
  } finally {
    linked.release();
  }
}
