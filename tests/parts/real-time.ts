/** What of a test's context a test in real time uses. */
export interface Attempt {
  after(clean: () => unknown): void;
}

/** A test function as the runner calls it. */
type TestFunction = (context: Attempt) => Promise<void>;

/**
 * For tests of media that go by as fast as the clock does: where other work holds the machine up for longer than players
 * and swarms wait, they miss something, and rightly. So what fails is said and tried once more, from its start; what is
 * broken fails again. Nothing else of the suite is ever tried twice.
 */
export function inRealTime(run: TestFunction): TestFunction {
  return async (context) => {
    try {
      await attempt(run);
    } catch (thrown) {
      console.error("in real time, failed once and tried again:", thrown);
      await run(context);
    }
  };
}

async function attempt(run: TestFunction): Promise<void> {
  const cleanings: (() => unknown)[] = [];
  try {
    await run({ after: (clean) => void cleanings.push(clean) });
  } finally {
    for (const clean of cleanings) await clean();
  }
}
