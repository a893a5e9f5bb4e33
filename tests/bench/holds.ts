import { readFileSync } from "node:fs";

/** How long the event loop was blocked, in total and by this thread. */
export interface Holds {
  /** The longest time between two turns of the loop. */
  readonly longestMs: number;
  /** The longest time this thread computed between two turns, including garbage collection. */
  readonly longestOwnMs: number;
  /** How often `longestOwnMs` exceeded 20 ms. */
  readonly over20: number;
  /** Peak resident memory minus the memory at the start. */
  readonly addedBytes: number;
}

const EVERY_MS = 1;
const TOO_LONG_MS = 20;

/**
 * Measures how long the event loop blocks, until the returned function is called. Reports wall time and this thread's CPU time. With HOLDS=20 in the
 * environment, each block longer than 20 ms is printed when it ends.
 */
export function watchHolds(): () => Holds {
  const before = process.memoryUsage().rss;
  let most = before;
  let longestMs = 0;
  let longestOwnMs = 0;
  let over20 = 0;
  let last = performance.now();
  let lastOwn = ownMs();
  const look = () => {
    const now = performance.now();
    const own = ownMs();
    longestMs = Math.max(longestMs, now - last - EVERY_MS);
    longestOwnMs = Math.max(longestOwnMs, own - lastOwn);
    if (own - lastOwn > TOO_LONG_MS) over20++;
    if (process.env.HOLDS && own - lastOwn > Number(process.env.HOLDS))
      console.log(
        `  hold at ${now.toFixed(0)}: ${(own - lastOwn).toFixed(0)} of ${(now - last).toFixed(0)} ms`,
      );
    most = Math.max(most, process.memoryUsage().rss);
    // Excludes the cost of this measurement.
    last = performance.now();
    lastOwn = ownMs();
  };
  const timer = setInterval(look, EVERY_MS);
  return () => {
    clearInterval(timer);
    look();
    return { longestMs, longestOwnMs, over20, addedBytes: most - before };
  };
}

/** The processor time of this thread alone. */
function ownMs(): number {
  try {
    // The kernel counts it in nanoseconds; the main thread has the number of the process.
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1").split(" ", 1)[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}
