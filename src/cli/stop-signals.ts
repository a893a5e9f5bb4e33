import type { Log } from "../base/log.ts";

/** A clean end takes a moment (goodbyes to trackers, records); whoever asked must not wait longer. */
const CLEAN_END_MS = 5000;
/** One Ctrl-C can arrive twice: from the terminal, and from the npm that started us. */
const SAME_SIGNAL_MS = 300;
/** What shells report for a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/**
 * Fires at the first SIGINT or SIGTERM. The second one, or five seconds, end the process at once. `release` takes the
 * listeners away again.
 */
export function stopSignals(log: Log): { readonly signal: AbortSignal; release(): void } {
  const stop = new AbortController();
  let deadline: ReturnType<typeof setTimeout> | undefined;
  let firstMs = 0;
  const onSignal = () => {
    if (stop.signal.aborted) {
      if (performance.now() - firstMs > SAME_SIGNAL_MS) process.exit(INTERRUPTED);
      return;
    }
    firstMs = performance.now();
    deadline = setTimeout(() => {
      log.warn("not everything was closed in time; what the disk had not taken is fetched again");
      process.exit(1);
    }, CLEAN_END_MS - 500);
    deadline.unref();
    stop.abort();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return {
    signal: stop.signal,
    release() {
      clearTimeout(deadline);
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
}

/** Resolves when the signal fires. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
