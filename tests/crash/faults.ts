import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "../../src/runtime/open-store.ts";
import { areSame, History, recordsOf } from "./history.ts";

const WRITER = fileURLToPath(new URL("writer.ts", import.meta.url));
/** Commits before the workload, and at its end. */
const BEFORE = 10;
const LAST = 22;
/** All system calls by which a store accesses the disk. */
const CALLS = ["openat", "pwrite64", "write", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "mkdir"];
const FILES = [
  "",
  "db",
  "db-wal",
  "db-shm",
  "snapshot",
  "snapshot.new",
  "tip",
  "lock",
  "building",
  "building-wal",
  "ready",
  "1.old",
];
const FAULTS = ["error=EIO", "error=ENOSPC", "signal=SIGKILL"] as const;

/** Initial states: no store, a store after a crash, one whose database must be repaired. */
const SCENARIOS = ["new", "crashed", "damaged"] as const;
type Scenario = (typeof SCENARIOS)[number];

/** Results of the faults. */
export interface FaultFigures {
  /** Number of failed calls, each with every fault. */
  readonly calls: number;
  readonly runs: number;
  readonly failedCommits: number;
  readonly refusedStarts: number;
}

/** Why fault injection is unavailable; undefined if it is available. */
export function missingFaultSupport(): string | undefined {
  const { status, error } = spawnSync("strace", ["-f", "-qq", "-o", "/dev/null", "true"]);
  if (error !== undefined) return `strace cannot be run: ${error.message}`;
  return status === 0 ? undefined : "strace may not trace here";
}

/**
 * Injects each fault into each system call of a workload by strace. `every`: only each n-th call.
 * Acknowledged commits must persist, rejected ones must not, and the store must open.
 */
export async function failEachCall(
  folder: string,
  command: readonly [string, ...string[]],
  every: number,
  seed: number,
): Promise<FaultFigures> {
  const figures = { calls: 0, runs: 0, failedCommits: 0, refusedStarts: 0 };
  const history = new History(seed);
  await makeModels(folder, history);
  for (const scenario of SCENARIOS) {
    const counts = new Map<string, number>();
    await begin(folder, scenario);
    const { calls } = await live(folder, command, seed, []);
    for (const call of calls) counts.set(call, (counts.get(call) ?? 0) + 1);
    for (const [call, count] of counts) {
      for (let when = 1 + (figures.calls % every); when <= count; when += every) {
        figures.calls++;
        for (const fault of FAULTS) {
          await begin(folder, scenario);
          const label = `seed ${seed}, ${scenario}, ${call} ${when} of ${count}, ${fault}`;
          const inject = ["-e", `inject=${call}:${fault}:when=${when}`];
          const { lines } = await live(folder, command, seed, inject);
          figures.runs++;
          figures.failedCommits += lines.filter((line) => line.startsWith("failed ")).length;
          figures.refusedStarts += lines.filter((line) => line.startsWith("refused ")).length;
          await judge(folder, history, scenario, lines, label, fault === "signal=SIGKILL");
        }
      }
    }
  }
  return figures;
}

async function makeModels(folder: string, history: History): Promise<void> {
  const store = await openStore({
    folder: join(folder, "crashed"),
    kind: "sqlite",
    shared: false,
    warn: assert.fail,
  });
  for (let number = 1; number <= BEFORE; number++) await store.commit(history.change(number));
  await cp(join(folder, "crashed"), join(folder, "kept"), { recursive: true });
  await store.close();
  await cp(join(folder, "crashed"), join(folder, "damaged"), { recursive: true });
  await rm(join(folder, "damaged", "records.db"));
  await rm(join(folder, "crashed"), { recursive: true });
  await cp(join(folder, "kept"), join(folder, "crashed"), { recursive: true });
}

async function begin(folder: string, scenario: Scenario): Promise<void> {
  await rm(join(folder, "one"), { recursive: true, force: true });
  if (scenario !== "new") await cp(join(folder, scenario), join(folder, "one"), { recursive: true });
}

/** Runs the writer under strace; returns its output and the calls that accessed the store. */
async function live(folder: string, command: readonly string[], seed: number, inject: readonly string[]) {
  const one = join(folder, "one");
  const log = join(folder, "strace.log");
  const paths = FILES.flatMap((name) => ["-P", name === "" ? one : join(one, `records.${name}`)]);
  const tracing = [
    "-f",
    "-qq",
    "--seccomp-bpf",
    "-o",
    log,
    ...paths,
    "-e",
    `trace=${CALLS.join()}`,
    ...inject,
  ];
  const { stdout } = spawnSync("strace", [...tracing, ...command, WRITER, one, String(seed), String(LAST)], {
    encoding: "utf8",
    timeout: 60_000,
  });
  const calls = (await readFile(log, "utf8")).matchAll(/^\d+ +(\w+)\(/gm);
  return {
    lines: stdout.split("\n").filter((line) => line !== ""),
    calls: [...calls].map(([, call]) => call!),
  };
}

async function judge(
  folder: string,
  history: History,
  scenario: Scenario,
  lines: readonly string[],
  label: string,
  isKilled: boolean,
): Promise<void> {
  const details = `${label}:\n${lines.join("\n")}\n`;
  const numbers = lines.filter((line) => /^\d+$/.test(line)).map(Number);
  const acknowledged = numbers.at(-1) ?? (scenario === "new" ? 0 : BEFORE);
  if (!isKilled && !lines.some((line) => line.startsWith("refused ")))
    assert.ok(lines.includes("closed"), details);
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message);
  const store = await openStore({ folder: join(folder, "one"), kind: "sqlite", shared: false, warn });
  const there = await recordsOf(store);
  await store.close();
  if (scenario !== "damaged") assert.deepEqual(warnings, [], details);
  const count = Number(there.get("meta/count") ?? 0);
  assert.ok(
    count === acknowledged || (isKilled && count === acknowledged + 1),
    `${details}commit ${count} is the last one`,
  );
  assert.ok(areSame(there, history.after(count)), `${details}the records are not those of commit ${count}`);
}
