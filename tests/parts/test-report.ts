import { appendFileSync } from "node:fs";

/** A fact about a run that `tests/run.ts` prints at its end. */
export type TestFact =
  | { readonly kind: "skip"; readonly name: string; readonly reason: string }
  /** A test of `inRealTime` has started. */
  | { readonly kind: "real-time" }
  /** A test of `inRealTime` failed and ran again. */
  | { readonly kind: "retry"; readonly name: string; readonly error: string };

/** The file that collects facts, one line of JSON each: test files run in processes of their own. */
export const REPORT_VARIABLE = "TESTS_REPORT";

/** Records a fact for the end of the run; does nothing if a test file runs without `tests/run.ts`. */
export function reportFact(fact: TestFact): void {
  const path = process.env[REPORT_VARIABLE];
  if (path) appendFileSync(path, `${JSON.stringify(fact)}\n`);
}
