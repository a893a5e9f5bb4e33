import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { NO_REACH_ENVIRONMENT } from "./no-reach.ts";

/** A program that runs beside the test. */
export interface RunningProcess {
  readonly child: ChildProcess;
  readonly pid: number;
  /** Resolves with the first line, past or future, for which `matches` returns true; rejects if the program ends before. */
  line(matches: (line: string) => boolean, withinMs?: number): Promise<string>;
  /** The last lines printed so far, for failure messages. */
  output(): string;
  /** Ends it (SIGTERM, then SIGKILL after 5 s) and resolves with its exit code. */
  stop(): Promise<number | null>;
}

const OUTPUT_LINES = 400;

/** Starts a program and reads its lines; it is killed when the test process ends. */
export function startProcess(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string | undefined>; stdin?: "pipe" } = {},
): RunningProcess {
  const child = spawn(command, [...args], {
    stdio: [options.stdin ?? "ignore", "pipe", "pipe"],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { ...process.env, ...NO_REACH_ENVIRONMENT, ...options.env },
  });
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let ended = false;
  const heard = (line: string) => {
    lines.push(line);
    if (lines.length > OUTPUT_LINES) lines.shift();
    for (const look of [...waiting]) look();
  };
  createInterface({ input: child.stdout! }).on("line", heard);
  createInterface({ input: child.stderr! }).on("line", heard);
  const closed = new Promise<number | null>((resolve) => {
    child.on("error", (error) => heard(String(error)));
    child.on("close", (code) => {
      ended = true;
      for (const look of [...waiting]) look();
      resolve(code);
    });
  });
  const killed = () => child.kill("SIGKILL");
  process.once("exit", killed);
  closed.then(() => process.removeListener("exit", killed));

  return {
    child,
    pid: child.pid ?? -1,
    output: () => lines.join("\n"),
    line: (matches, withinMs = 75_000) =>
      new Promise((resolve, reject) => {
        const done = (act: () => void) => {
          clearTimeout(timer);
          waiting.delete(look);
          act();
        };
        const fail = (why: string) =>
          done(() => reject(new Error(`${command} ${why}; its output:\n${lines.join("\n")}`)));
        const look = () => {
          const line = lines.find(matches);
          if (line !== undefined) done(() => resolve(line));
          else if (ended) fail("ended before it printed the expected line");
        };
        const timer = setTimeout(() => fail("did not print the expected line in time"), withinMs);
        waiting.add(look);
        look();
      }),
    stop: async () => {
      if (!ended) child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      const code = await closed;
      clearTimeout(timer);
      return code;
    },
  };
}

/** Runs a program to its end and returns its output; rejects with the output if it fails. */
export function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(command, [...args], { maxBuffer: 1 << 28 }, (error, stdout, stderr) => {
      if (error)
        reject(new Error(`${command} ${args.join(" ")} failed: ${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout + stderr);
    });
  });
}

/** CPU seconds (user and system) and memory in bytes of a running process, from `/proc`. */
export function usageOf(pid: number): { cpuSeconds: number; peakBytes: number; residentBytes: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kilobytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) * 1024;
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100,
    peakBytes: kilobytes("VmHWM"),
    residentBytes: kilobytes("VmRSS"),
  };
}

/** The ids of the processes of a process group. */
export function processGroup(group: number): number[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ");
      return Number(fields[2]) === group ? [Number(pid)] : [];
    } catch {
      return [];
    }
  });
}
