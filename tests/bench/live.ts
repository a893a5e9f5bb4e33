// `bun tests/bench/live.ts [--joins N] [--seconds N] [--warm-up SECONDS]`: joins, delays and CPU of real engines on one machine, each a process of
// its own, with a stream of 8 Mbit/s whose packets carry their send time.
import { parseArgs } from "node:util";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { type BroadcastProcess, startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { quantile, type Watched, watchLive } from "../parts/live-watch.ts";
import { usageOf } from "../parts/process.ts";
import { markdownTable } from "./table.ts";

const BYTES_PER_SECOND = 1_000_000;

const { values } = parseArgs({
  options: {
    joins: { type: "string", default: "20" },
    seconds: { type: "string", default: "20" },
    // Until the CPU is measured; at first a part of it is the compiler.
    "warm-up": { type: "string", default: "30" },
  },
});

/** Joins by engines that know nothing, one after another, and by an engine that has the stream already. */
async function joins(source: BroadcastProcess, count: number): Promise<string[][]> {
  const fresh: Watched[] = [];
  for (let i = 0; i < count; i++) {
    const engine = await startEngine({ env: { SLUICE_LOG: "error" } });
    fresh.push(await watchLive(watchUrl(engine, source.magnet), 2_500));
    await engine.stop();
  }
  const engine = await startEngine({ env: { SLUICE_LOG: "error" } });
  const first = watchLive(watchUrl(engine, source.magnet), 1_000 + count * 600);
  const known: Watched[] = [];
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  for (let i = 0; i < count; i++) known.push(await watchLive(watchUrl(engine, source.magnet), 550));
  await first;
  await engine.stop();
  return [
    row(
      "magnet → first byte of media",
      "≤ 100",
      fresh.map(({ firstByteMs }) => firstByteMs),
    ),
    row(
      "magnet → a second of media",
      "≤ 250",
      fresh.map(({ secondMs }) => secondMs),
    ),
    row(
      "another player → first byte",
      "",
      known.map(({ firstByteMs }) => firstByteMs),
    ),
    row(
      "another player → a second of media",
      "",
      known.map(({ secondMs }) => secondMs),
    ),
  ];
}

function row(name: string, aim: string, figures: readonly number[]): string[] {
  const sorted = [...figures].sort((a, b) => a - b);
  return [
    name,
    ...[0.5, 0.95, 1].map((q) => quantile(sorted, q).toFixed(quantile(sorted, q) < 10 ? 1 : 0)),
    aim,
  ];
}

/** Measures an engine between the source and one viewer: it downloads the stream once and uploads it about once. */
async function steady(source: BroadcastProcess, warmUp: number, seconds: number): Promise<string[][]> {
  const engines: EngineProcess[] = [];
  for (let i = 0; i < 3; i++) engines.push(await startEngine({ env: { SLUICE_LOG: "error" } }));
  const watching = engines.map((engine) =>
    watchLive(watchUrl(engine, source.magnet), (warmUp + seconds) * 1_000),
  );
  await new Promise((resolve) => setTimeout(resolve, warmUp * 1_000));
  const processes = engines.map(({ pid }) => pid);
  const before = processes.map((pid) => usageOf(pid).cpuSeconds);
  await new Promise((resolve) => setTimeout(resolve, (seconds - 1) * 1_000));
  const share = processes.map((pid, i) => (100 * (usageOf(pid).cpuSeconds - before[i]!)) / (seconds - 1));
  const seen = await Promise.all(watching);
  for (const engine of engines) await engine.stop();
  const delays = seen.flatMap(({ delaysMs }) => delaysMs).sort((a, b) => a - b);
  const missing = seen.reduce((sum, watched) => sum + watched.missing, 0);
  return [
    row("source byte → player byte", "≤ 100", delays),
    row("CPU of a viewer's engine, % of a core", "≤ 3", share),
    row("packets missing, of all three", "0", [missing]),
  ];
}

const source = await startBroadcast({ timedBytesPerSecond: BYTES_PER_SECOND });
try {
  const rows = [
    ...(await joins(source, Number(values.joins))),
    ...(await steady(source, Number(values["warm-up"]), Number(values.seconds))),
  ];
  console.log(markdownTable(["8 Mbit/s, one machine", "p50", "p95", "most", "aim"], rows));
} finally {
  await source.stop();
}
