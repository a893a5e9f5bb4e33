import type { LiveWindow } from "./live-window.ts";

/** A wait that its owner may cut short. */
export interface NewsWait {
  /** Resolves with the next change of the window, or when it is cut short; rejects with the signal's reason, and with `session_stopped`
   * where the window is closed. */
  readonly news: Promise<void>;
  cut(): void;
}

/** Waits for a change of the window; nothing hangs on it or on the signal afterwards. */
export function nextNews(window: LiveWindow, signal: AbortSignal): NewsWait {
  let cut = () => {};
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
    cut = () => {
      leave();
      resolve();
    };
    const takeBack = window.once(cut);
    signal.addEventListener("abort", aborted, { once: true });
  });
  return { news, cut };
}
