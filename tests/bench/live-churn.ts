// `bun tests/bench/live-churn.ts [--engines 30 --minutes 5 --kbit 2000 --killed 33]`: runs N engines as separate processes that
// watch one stream; each minute some are killed (SIGKILL) and replaced. Measures what the remaining engines miss.
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { startLoopbackTracker } from "../net/loopback-tracker.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { quantile, type Watched, watchLive } from "../parts/live-watch.ts";
import { usageOf } from "../parts/process.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({
  options: {
    engines: { type: "string", default: "30" },
    minutes: { type: "string", default: "5" },
    kbit: { type: "string", default: "2000" },
    killed: { type: "string", default: "33" },
    json: { type: "string" },
  },
});
const count = Number(values.engines);
const runMs = Number(values.minutes) * 60_000;
const bytesPerSecond = Number(values.kbit) * 125;

interface Viewer {
  readonly engine: EngineProcess;
  readonly watched: Promise<Watched>;
  isKilled: boolean;
}

const tracker = await startLoopbackTracker();
const source = await startBroadcast(
  { timedBytesPerSecond: bytesPerSecond },
  { flags: ["--tracker", tracker.httpUrl] },
);
const link = `magnet:?xt=urn:btih:${source.infohash}&tr=${encodeURIComponent(tracker.httpUrl)}`;
const endAt = performance.now() + runMs + count * 300;
const viewers: Viewer[] = [];

async function join(): Promise<Viewer> {
  const engine = await startEngine({
    env: { SLUICE_LOG: "error", SLUICE_LIVE_LIMIT: "0", SLUICE_STORE: "memory" },
  });
  const watched = watchLive(watchUrl(engine, link), Math.max(1_000, endAt - performance.now()));
  return { engine, watched, isKilled: false };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

try {
  while (viewers.length < count) viewers.push(await join());
  console.error(`${count} engines watch; ${values.killed} % of them are killed each minute`);
  const before = usageOf(source.pid);
  const everyMs = 60_000 / Math.max(0.01, (count * Number(values.killed)) / 100);
  const startedAt = performance.now();
  let killed = 0;
  while (performance.now() < endAt - 15_000) {
    await pause(everyMs);
    const living = viewers.filter((viewer) => !viewer.isKilled);
    const victim = living[Math.floor(Math.random() * living.length)]!;
    victim.isKilled = true;
    victim.engine.child.kill("SIGKILL");
    killed++;
    viewers.push(await join());
  }
  const seen = await Promise.all(
    viewers.map(async (viewer) => ({ ...(await viewer.watched), isKilled: viewer.isKilled })),
  );
  const stayed = seen.filter(({ isKilled }) => !isKilled);
  const stat = await sourceFigures();
  const delays = stayed
    .flatMap(({ delaysMs }) => delaysMs.filter((_, i) => i % 20 === 0))
    .sort((a, b) => a - b);
  const starts = stayed.map(({ secondMs }) => secondMs).sort((a, b) => a - b);
  const missing = stayed.reduce((sum, each) => sum + each.missing, 0);
  const marks = stayed.reduce((sum, each) => sum + each.marks, 0);
  const seconds = (performance.now() - startedAt) / 1_000;
  const rows = [
    ["viewers that stayed; killed and replaced", `${stayed.length}; ${killed}`],
    [
      "packets they missed",
      `${missing} of ${marks + missing} (by ${stayed.filter((each) => each.missing > 0).length} viewers)`,
    ],
    ["streams that ended before their time", String(stayed.filter(({ problem }) => problem).length)],
    ["delay p50 / p95 / p99.9, ms", [0.5, 0.95, 0.999].map((q) => quantile(delays, q)).join(" / ")],
    [
      "request → a second of media p50 / p95, ms",
      [0.5, 0.95].map((q) => quantile(starts, q).toFixed(0)).join(" / "),
    ],
    ["source upload, × the rate", (stat.uploaded / seconds / bytesPerSecond).toFixed(2)],
    [
      "CPU of the source and its shell, % of a core",
      ((100 * (usageOf(source.pid).cpuSeconds - before.cpuSeconds)) / seconds).toFixed(1),
    ],
  ];
  console.log(markdownTable([`${count} engines, ${values.kbit} kbit/s, ${values.minutes} min`, ""], rows));
  if (values.json)
    await writeFile(
      values.json,
      JSON.stringify({ delays, starts, missing, marks, seen: stayed.map(({ delaysMs, ...rest }) => rest) }),
    );
} finally {
  for (const { engine } of viewers) engine.child.kill("SIGKILL");
  await source.stop();
  await tracker.close();
}

/** Bytes that the source has sent to peers since its start, as it reports. */
async function sourceFigures(): Promise<{ readonly uploaded: number }> {
  const answer = await fetch(`${watchUrl({ url: source.url }, source.magnet)}&format=json`);
  const { response } = (await answer.json()) as { response: { stat_url: string } };
  const stat = (await (await fetch(response.stat_url)).json()) as { response: { uploaded: number } };
  return { uploaded: stat.response.uploaded };
}
