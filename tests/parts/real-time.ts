import { reportFact } from "./test-report.ts";

/** The part of a test context that a real-time test uses. */
export interface Attempt {
  after(clean: () => unknown): void;
}

/** A test function as the runner calls it. */
type TestFunction = (context: Attempt & { readonly name: string }) => Promise<void>;

/**
 * Wraps a test of media that plays at the pace of the real clock. If other work on the machine delays the test beyond the
 * timeouts of players and peers, they correctly drop data and the test fails. A failed test therefore runs a second time from
 * its start. `tests/run.ts` counts the retries. No other test is retried.
 */
export function inRealTime(run: (context: Attempt) => Promise<void>): TestFunction {
  return async (context) => {
    reportFact({ kind: "real-time" });
    try {
      await attempt(run);
    } catch (thrown) {
      console.error("real-time test failed, second attempt:", thrown);
      reportFact({ kind: "retry", name: context.name, error: String(thrown).split("\n")[0]! });
      await run({ after: (clean) => context.after(clean) });
    }
  };
}

async function attempt(run: (context: Attempt) => Promise<void>): Promise<void> {
  const cleanings: (() => unknown)[] = [];
  try {
    await run({ after: (clean) => void cleanings.push(clean) });
  } finally {
    for (const clean of cleanings) await clean();
  }
}
