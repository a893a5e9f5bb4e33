import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { PROGRAM_VARIABLE } from "./parts/engine.ts";
import { countsOf, failedFilesOf, type TestCounts } from "./parts/test-counts.ts";
import { REPORT_VARIABLE, type TestFact } from "./parts/test-report.ts";
import { isShortenedInFastRuns, TIER_VARIABLE, TIERS, tiersInFile } from "./parts/test-tiers.ts";

/** Files that may fail at the first attempt: real processes on a busy machine sometimes do, a defect does so again. */
const MAX_REPEATED_FILES = 3;

const HELP = `usage: npm test -- [TIER] [OPTIONS] [TEXT…]

TIER        fast (default), e2e, interop or all; slow (all that fast leaves out), smoke (a few of e2e)
TEXT        run only test files whose path contains one of the texts
--runtime   bun (default), deno or node
--watch     run again on each change (Bun)
--workers   number of processes (default: number of cores)
--name      run only tests whose name matches this regular expression
--list      print the test files and exit

If at most ${MAX_REPEATED_FILES} files of a whole tier fail, they run once more, alone, and the result is recorded.
CI=true makes a skipped test a failure.`;

const RUNS = [...TIERS, "all", "slow", "smoke"] as const;
type Run = (typeof RUNS)[number];

/** The end-to-end tests that CI repeats under Deno and Node: playback, live, HTTP sources, and the store after a crash. */
const SMOKE = [
  "play",
  "kept",
  "live-players",
  "live-relay",
  "broadcast-restart",
  "url-playback",
  "store-crash",
].map((name) => `tests/e2e/${name}.test.ts`);

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TIMEOUT_MS = 120_000;
/** A run that prints nothing for this time hangs: Deno and Node have no time limit for a test. */
const SILENCE_MS = 5 * TIMEOUT_MS;
/** Share of the real-time tests that may need a second attempt. */
const MAX_RETRY_SHARE = 0.01;
/** A run fails if a share of `MAX_RETRY_SHARE` produces its number of retries less often than this. */
const MIN_RETRY_PROBABILITY = 0.01;

function testFiles(run: Run, texts: readonly string[]): string[] {
  return readdirSync(join(ROOT, "tests"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !path.includes("node_modules"))
    .filter((path) => isPartOf(run, path))
    .filter((path) => texts.length === 0 || texts.some((text) => path.includes(text)))
    .sort();
}

function isPartOf(run: Run, path: string): boolean {
  if (run === "all") return true;
  if (run === "smoke") return SMOKE.includes(path);
  const text = readFileSync(join(ROOT, path), "utf8");
  const tiers = tiersInFile(text);
  if (run === "slow") return tiers.has("e2e") || tiers.has("interop") || isShortenedInFastRuns(text);
  return tiers.has(run);
}

/** The command that runs test files under a runtime. */
function commandOf(
  runtime: string,
  files: readonly string[],
  options: { workers: number; isWatching: boolean; name: string | undefined },
): string[] {
  const { workers, isWatching, name } = options;
  const paths = files.map((file) => `./${file}`);
  if (runtime === "bun") {
    const timings = join(ROOT, "node_modules", ".cache", "test-timings.json");
    mkdirSync(join(timings, ".."), { recursive: true });
    const parallel = [`--parallel=${workers}`, `--timings=${timings}`, "--update-timings"];
    return [
      ...[process.versions.bun ? process.execPath : "bun", "test", `--timeout=${TIMEOUT_MS}`],
      ...(isWatching ? ["--watch"] : parallel),
      ...(name === undefined ? [] : ["-t", name]),
      ...paths,
    ];
  }
  if (runtime === "deno") {
    const filter = name === undefined ? [] : [`--filter=/${name}/`];
    return ["deno", "test", "-A", "--no-check", "--parallel", ...filter, ...paths];
  }
  const filter = name === undefined ? [] : [`--test-name-pattern=${name}`];
  const reporter = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
  const concurrency = `--test-concurrency=${workers}`;
  // A failed test may leave a socket open; without the flag its process never ends, and the whole run waits for it.
  const node = [".ci/node", "--import", "tsx", "--test", "--test-force-exit"];
  return [...node, concurrency, ...reporter, ...filter, ...paths];
}

interface Outcome {
  readonly code: number;
  readonly counts: TestCounts | undefined;
  readonly failedFiles: readonly string[];
}

/** Runs the command, passes on its output, and returns its exit code, what it counted, and the files that failed. */
async function runTests(command: readonly string[], environment: Record<string, string>): Promise<Outcome> {
  const child = spawn(command[0]!, command.slice(1), {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
  const stop = (signal: NodeJS.Signals) => void child.kill(signal);
  process.on("SIGINT", stop).on("SIGTERM", stop);
  const ended = Promise.withResolvers<number>();
  const silence = setTimeout(() => {
    console.error(`No test ended for ${SILENCE_MS / 60_000} minutes. Processes:\n${processList()}`);
    child.kill("SIGKILL");
    // Its own processes may still hold the pipes open.
    ended.resolve(1);
  }, SILENCE_MS);
  let output = "";
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const) {
    from.on("data", (bytes: Buffer) => {
      to.write(bytes);
      silence.refresh();
      output += bytes.toString("latin1");
    });
  }
  child.on("error", (error) => {
    console.error(`cannot run ${command[0]}: ${error.message}`);
    ended.resolve(1);
  });
  child.on("close", (exitCode) => ended.resolve(exitCode ?? 1));
  const code = await ended.promise;
  clearTimeout(silence);
  return { code, counts: countsOf(output), failedFiles: failedFilesOf(output) };
}

function processList(): string {
  try {
    return execFileSync("ps", ["-eo", "pid,ppid,etime,time,args"], { encoding: "utf8" });
  } catch {
    return "unknown (install ps)";
  }
}

/** The outcome of both attempts; undefined if a file failed again. */
function combined(first: Outcome, second: Outcome): Outcome | undefined {
  if (!first.counts || !second.counts || second.code !== 0) return undefined;
  const counts = { ...first.counts, passed: first.counts.passed + first.counts.failed, failed: 0 };
  return { code: 0, counts, failedFiles: [] };
}

function factsOf(path: string): TestFact[] {
  try {
    const lines = readFileSync(path, "utf8").trim().split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as TestFact);
  } catch {
    return []; // No test recorded anything.
  }
}

/** Prints the skipped tests by reason and the retries; returns why these facts fail the run in CI. */
function summarize(facts: readonly TestFact[], skipped: number): string[] {
  const reasons = new Map<string, number>();
  for (const fact of facts)
    if (fact.kind === "skip") reasons.set(fact.reason, (reasons.get(fact.reason) ?? 0) + 1);
  const retries = facts.filter((fact) => fact.kind === "retry");
  const runs = facts.filter((fact) => fact.kind === "real-time").length;
  if (reasons.size > 0) console.log("\nSkipped tests:");
  for (const [reason, count] of [...reasons].sort(([, a], [, b]) => b - a))
    console.log(`${String(count).padStart(6)}  ${reason}`);
  const share = runs === 0 ? 0 : retries.length / runs;
  console.log(`\nRetries of real-time tests: ${retries.length} of ${runs} (${(100 * share).toFixed(1)} %)`);
  for (const { name, error } of retries) console.log(`  ${name}: ${error}`);
  return [
    ...(skipped > 0 ? [`${skipped} tests were skipped, and CI must run them all`] : []),
    ...(isTooMany(retries.length, runs)
      ? [`more than ${100 * MAX_RETRY_SHARE} % of the real-time tests need a retry`]
      : []),
  ];
}

/**
 * Returns true if so many retries in so many tests show a share above `MAX_RETRY_SHARE`. One retry in 40 tests shows nothing, so
 * the judge is the probability of at least `retries` retries at that share (binomial distribution).
 */
function isTooMany(retries: number, runs: number): boolean {
  let atLeast = 1;
  let exactly = (1 - MAX_RETRY_SHARE) ** runs;
  for (let count = 0; count < retries; count++) {
    atLeast -= exactly;
    exactly *= ((runs - count) / (count + 1)) * (MAX_RETRY_SHARE / (1 - MAX_RETRY_SHARE));
  }
  return atLeast < MIN_RETRY_PROBABILITY;
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean" },
      list: { type: "boolean" },
      watch: { type: "boolean" },
      runtime: { type: "string", default: "bun" },
      workers: { type: "string", default: String(availableParallelism()) },
      name: { type: "string" },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  // The last tier named wins, so that `npm test -- e2e` runs another tier than its script names.
  const run = positionals.findLast((text): text is Run => RUNS.some((each) => each === text)) ?? "fast";
  const texts = positionals.filter((text) => !RUNS.some((each) => each === text));
  const files = testFiles(run, texts);
  if (values.list) console.log(files.join("\n"));
  if (values.list) return 0;
  if (files.length === 0) {
    console.error(`No test file of the tier "${run}" has ${texts.join(" or ")} in its path.`);
    return 1;
  }
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-run-"));
  const report = join(folder, "facts");
  const isWatching = values.watch ?? false;
  const options = { workers: Number(values.workers), isWatching, name: values.name };
  const environment: Record<string, string> = {
    PATH: `${join(ROOT, "node_modules", ".bin")}:${process.env.PATH}`,
    DENO_JOBS: values.workers,
    [REPORT_VARIABLE]: report,
    [TIER_VARIABLE]: run === "smoke" || run === "slow" ? "all" : run,
  };
  if (values.runtime === "bun" && run !== "fast") {
    // Engines of these tests are the program that users run. The fast tests need none that starts quickly.
    execFileSync("sh", [join(ROOT, ".ci/compile")], {
      stdio: "inherit",
      env: { ...process.env, ...environment },
    });
    environment[PROGRAM_VARIABLE] = join(ROOT, "dist/sluice");
  }
  try {
    const first = await runTests(commandOf(values.runtime, files, options), environment);
    if (isWatching) return first.code;
    const again = first.failedFiles;
    let outcome = first;
    if (first.counts && again.length > 0 && again.length <= MAX_REPEATED_FILES && texts.length === 0) {
      console.log(`\nSecond attempt, alone: ${again.join(", ")}`);
      const alone = { ...options, workers: 1 };
      outcome =
        combined(first, await runTests(commandOf(values.runtime, again, alone), environment)) ?? first;
    }
    const { code, counts } = outcome;
    const problems = summarize(factsOf(report), counts?.skipped ?? 0);
    if (again.length > 0) {
      console.log(`\nFailed at the first attempt: ${again.join(", ")}`);
      console.log(
        outcome === first
          ? "They were not repeated: only a whole run does that, if few files failed."
          : code === 0
            ? "All of these passed at the second attempt."
            : "A second attempt did not pass.",
      );
    }
    const isCi = process.env.CI !== undefined && process.env.CI !== "" && process.env.CI !== "false";
    if (isCi) for (const problem of problems) console.log(problem);
    if (counts === undefined) {
      console.log(`\nThe tests ended without a result (exit code ${code}).`);
      return 1;
    }
    // The last line, for people and for scripts.
    console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    return code === 0 && counts.failed === 0 && !(isCi && problems.length > 0) ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

process.exit(await main());
