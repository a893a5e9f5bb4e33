import type { Log } from "../base/log.ts";

/** Maximum time of a clean shutdown (`stopped` to trackers, closing the database). */
const CLEAN_END_MS = 5000;
/** One Ctrl-C can arrive twice: from the terminal, and from the npm that started this process. */
const SAME_SIGNAL_MS = 300;
/** Exit code after Ctrl-C (128 + SIGINT). */
const INTERRUPTED = 130;

/**
 * Returns a signal that fires at the first SIGINT or SIGTERM. A second one, or a shutdown of more than 5 s and `drainMs`, ends
 * the process. `stop` does the same as the first signal; `release` removes the listeners.
 */
export function stopSignals(
  log: Log,
  drainMs: () => number = () => 0,
): { readonly signal: AbortSignal; stop(): void; release(): void } {
  const stop = new AbortController();
  let deadline: ReturnType<typeof setTimeout> | undefined;
  let firstMs = 0;
  const begin = () => {
    if (stop.signal.aborted) return;
    firstMs = performance.now();
    deadline = setTimeout(
      () => {
        log.warn("the shutdown timed out; data that was not written to disk will be downloaded again");
        process.exit(1);
      },
      CLEAN_END_MS - 500 + drainMs(),
    );
    deadline.unref();
    stop.abort();
  };
  const onSignal = () => {
    if (stop.signal.aborted && performance.now() - firstMs > SAME_SIGNAL_MS) process.exit(INTERRUPTED);
    begin();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return {
    signal: stop.signal,
    stop: begin,
    release() {
      clearTimeout(deadline);
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
}

/**
 * Calls `reload` at each SIGHUP. If the program was started in a terminal, SIGHUP means that the terminal was closed, and ends the
 * program as usual. Returns a function that removes the listener.
 */
export function onReloadSignal(isInTerminal: boolean, reload: () => void): () => void {
  if (isInTerminal) return () => {};
  process.on("SIGHUP", reload);
  return () => process.off("SIGHUP", reload);
}

/** Resolves when the signal fires. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
