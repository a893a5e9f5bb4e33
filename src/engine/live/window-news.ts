import type { LiveWindow } from "./live-window.ts";

/** A wait that its owner may end early. */
export interface NewsWait {
  /** Resolves with the next change of the window, or when it is ended early; rejects with the signal's reason, and with `session_stopped`
   * where the window is closed. */
  readonly news: Promise<void>;
  stop(): void;
}

/** Waits for a change of the window; nothing hangs on it or on the signal afterwards. */
export function nextNews(window: LiveWindow, signal: AbortSignal): NewsWait {
  let stop = () => {};
  const news = new Promise<void>((resolve, reject) => {
    signal.throwIfAborted();
    const leave = () => {
      takeBack();
      signal.removeEventListener("abort", aborted);
    };
    const aborted = () => {
      leave();
      reject(signal.reason);
    };
    stop = () => {
      leave();
      resolve();
    };
    const takeBack = window.once(stop);
    signal.addEventListener("abort", aborted, { once: true });
  });
  return { news, stop };
}
