/** Lets a few at a time; the others wait their turn, in the order in which they came. */
export interface Slots {
  /** Resolves to the function that gives the slot back. Rejects with the signal's reason where it fires first. */
  take(signal: AbortSignal): Promise<() => void>;
}

/** `count` slots, all free. */
export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];
  const giveBack = () => {
    free++;
    waiting.shift()?.();
  };
  return {
    async take(signal) {
      while (free === 0) await turn(waiting, signal);
      if (signal.aborted) {
        // It was this one's turn: it goes on to the next.
        waiting.shift()?.();
        throw signal.reason;
      }
      free--;
      return giveBack;
    },
  };
}

function turn(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const called = () => {
      signal.removeEventListener("abort", aborted);
      resolve();
    };
    const aborted = () => {
      waiting.splice(waiting.indexOf(called), 1);
      reject(signal.reason);
    };
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", aborted, { once: true });
    waiting.push(called);
  });
}
