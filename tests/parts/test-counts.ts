/** How many tests of a run had which result. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are coloured with escape sequences.
const COLOURS = /\u001b\[[\d;]*m/g;

/** Reads the counts that `bun test`, `deno test` or `node --test` prints last; undefined if there are none. */
export function countsOf(output: string): TestCounts | undefined {
  const text = output.replace(COLOURS, "");
  const number = (pattern: RegExp) => Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0);
  if (/^Ran \d+ tests? across/m.test(text)) {
    const errors = number(/^ *(\d+) errors?$/gm);
    return {
      passed: number(/^ *(\d+) pass$/gm),
      failed: number(/^ *(\d+) fail$/gm) + errors,
      skipped: number(/^ *(\d+) skip$/gm),
    };
  }
  if (/\d+ passed .*\| \d+ failed/.test(text)) {
    // Tests within a `describe` are steps.
    const [passedSteps, failedSteps] = [
      number(/\d+ passed \((\d+) steps?\)/g),
      number(/\d+ failed \((\d+) steps?\)/g),
    ];
    return {
      passed: number(/(\d+) passed/g) + passedSteps,
      failed: number(/(\d+) failed/g) + failedSteps,
      skipped: number(/(\d+) ignored/g),
    };
  }
  if (/^\S+ tests \d+$/m.test(text)) {
    return {
      passed: number(/^\S+ pass (\d+)$/gm),
      failed: number(/^\S+ fail (\d+)$/gm) + number(/^\S+ cancelled (\d+)$/gm),
      skipped: number(/^\S+ skipped (\d+)$/gm),
    };
  }
  return undefined;
}

/** Returns the files of failed tests in the output of `bun test`, `deno test` or `node --test`, each once. */
export function failedFilesOf(output: string): string[] {
  const failed = new Set<string>();
  let file: string | undefined;
  for (const line of output.replace(COLOURS, "").split("\n")) {
    // Bun names the file before its tests, Deno after the name of each failed test, Node in its summary.
    file = /^(tests\/\S+\.test\.ts):$/.exec(line)?.[1] ?? file;
    // The summary of Bun repeats the tests without their files.
    if (/^\d+ tests? failed:$/.test(line)) file = undefined;
    if (line.startsWith("(fail) ") && file !== undefined) failed.add(file);
    const named =
      / => \.\/(tests\/\S+\.test\.ts):\d+:\d+$/.exec(line) ??
      /^test at (tests\/\S+\.test\.ts):\d+:\d+$/.exec(line);
    if (named) failed.add(named[1]!);
  }
  return [...failed];
}
