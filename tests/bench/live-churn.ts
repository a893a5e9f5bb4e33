// `bun tests/bench/live-churn.ts [--engines 30 --minutes 5 --kbit 2000 --killed 33 --hostile 3 --python]`: runs N engines
// as separate processes that watch one stream; each minute some are killed (SIGKILL) and replaced. Hostile peers attack the source
// and some of the engines, each with another kind of attack every half minute. With `--python`, the viewer in Python of the interop
// tests, which was written from the specification alone, watches too. Measures what the remaining viewers miss. `--logs FOLDER` stores the log of each engine. `--nice=-15` (Linux, as root) puts all its processes before other load.
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, loadavg, setPriority } from "node:os";
import { join as joinPath } from "node:path";
import { parseArgs } from "node:util";
import { startLoopbackTracker } from "../net/loopback-tracker.ts";
import { type EngineProcess, startEngine } from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { quantile, type Watched, watchLive } from "../parts/live-watch.ts";
import { processGroup, type RunningProcess, usageOf } from "../parts/process.ts";
import { pythonViewerState, startPythonViewer } from "../parts/python-viewer.ts";
import { MarkReader } from "../parts/timed-stream.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { ATTACK_KINDS, type AttackKind } from "./live-attack-kinds.ts";
import { startStrangers } from "./live-stranger.ts";
import { markdownTable } from "./table.ts";

const { values } = parseArgs({
  options: {
    engines: { type: "string", default: "30" },
    minutes: { type: "string", default: "5" },
    kbit: { type: "string", default: "2000" },
    killed: { type: "string", default: "33" },
    hostile: { type: "string", default: "0" },
    python: { type: "boolean", default: false },
    nice: { type: "string" },
    logs: { type: "string" },
    json: { type: "string" },
  },
});
const count = Number(values.engines);
const runMs = Number(values.minutes) * 60_000;
const bytesPerSecond = Number(values.kbit) * 125;
/** Delays are stored of each 20th packet: all packets of an hour would take gigabytes. */
const SAMPLE_EVERY = 20;
/** A hostile peer changes its attack, its address and its targets after this time. */
const ATTACK_MS = 30_000;
/** The engines that one hostile peer attacks at once, besides the source. */
const TARGETS = 5;
/** The engines to which the viewer in Python connects, besides the source. */
const PYTHON_PEERS = 3;
/** Interval between two viewers at the start. */
const JOIN_MS = 500;
/** The measurement starts this long after the last of them has joined. */
const SETTLE_MS = 30_000;
const MINUTE_MS = 60_000;

interface Viewer {
  readonly engine: EngineProcess;
  readonly watched: Promise<Watched>;
  isKilled: boolean;
}

/** Figures of one minute. */
interface Sample {
  /** Resident memory of each engine, and of the source with its input, in MiB. */
  readonly engines: readonly number[];
  readonly source: number;
  readonly load: number;
}

if (values.nice) setPriority(Number(values.nice));
const tracker = await startLoopbackTracker();
const source = await startBroadcast(
  { timedBytesPerSecond: bytesPerSecond },
  { flags: ["--tracker", tracker.httpUrl, "--log", "info"] },
);
if (values.nice)
  // Linux compares sessions first, and only then the processes of a session. The source has a session of its own.
  for (const pid of ["self", source.pid]) await writeFile(`/proc/${pid}/autogroup`, values.nice);
const link = `magnet:?xt=urn:btih:${source.infohash}&tr=${encodeURIComponent(tracker.httpUrl)}`;
let [measureAt, endAt] = [0, 0];
const engines: EngineProcess[] = [];
const viewers: Viewer[] = [];
const samples: Sample[] = [];
const strangers = new Set<RunningProcess>();
const hostile = { attacks: 0, kinds: new Set<string>(), cpuMs: 0 };
let honestBans = 0;
let killed = 0;

/** Counts bans of honest peers, which are at 127.0.0.1, and stores the log. */
function follow({ child }: RunningProcess, name: string): void {
  const log = values.logs && createWriteStream(joinPath(values.logs, `${name}.log`));
  for (const stream of [child.stdout!, child.stderr!])
    stream.on("data", (text) => {
      honestBans += String(text).match(/peer banned peer=127\.0\.0\.1:/g)?.length ?? 0;
      if (log) log.write(text);
    });
}

const start = () =>
  startEngine({ env: { SLUICE_LOG: "info", SLUICE_LIVE_LIMIT: "0", SLUICE_STORE: "memory" } });

/** Adds a viewer with a player, until the end. */
function join(engine: EngineProcess): void {
  const name = String(viewers.length);
  follow(engine, name);
  viewers.push({ engine, watched: watch(watchUrl(engine, link), name), isKilled: false });
}

/** Those that are there at the start are measured when all of them play: thirty starts take all of a small machine. */
function watch(url: string, name: string): Promise<Watched> {
  const now = performance.now();
  return watchLive(url, Math.max(1_000, endAt - now), {
    sampleEvery: SAMPLE_EVERY,
    settleMs: Math.max(0, measureAt - now),
    noticed: (event) => console.error(`${new Date().toISOString()} viewer ${name}: ${event}`),
  });
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const random = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)]!;
const livingViewers = () => viewers.filter((viewer) => !viewer.isKilled);
const remainingMs = () => endAt - 15_000 - performance.now();

async function churn(): Promise<void> {
  const everyMs = MINUTE_MS / ((count * Number(values.killed)) / 100);
  while (everyMs < remainingMs()) {
    await pause(everyMs);
    const victim = random(livingViewers());
    victim.isKilled = true;
    victim.engine.child.kill("SIGKILL");
    killed++;
    join(await start());
  }
}

/** One hostile peer: one kind of attack after another. `kinds` is shared by all, and refilled in a random order. */
async function attack(kinds: AttackKind[]): Promise<void> {
  while (remainingMs() > ATTACK_MS) {
    if (kinds.length === 0) kinds.push(...ATTACK_KINDS);
    const [{ name, only }] = kinds.splice(Math.floor(Math.random() * kinds.length), 1) as [AttackKind];
    const targets = livingViewers().sort(() => Math.random() - 0.5);
    const ports = targets.slice(0, TARGETS).map(({ engine }) => engine.p2pPort);
    if (only !== "viewer") ports.push(source.p2pPort);
    console.error(`${new Date().toISOString()} ${name} on ${ports.join(" ")}`);
    const process = await startStrangers(name, 1, source, ports, hostile.attacks++);
    hostile.kinds.add(name);
    strangers.add(process);
    await pause(ATTACK_MS);
    process.child.kill("SIGTERM");
    const { cpuMs } = JSON.parse(await process.line((line) => line.startsWith("{"))) as { cpuMs: number };
    hostile.cpuMs += cpuMs;
    await process.stop();
    strangers.delete(process);
  }
}

/** The viewer in Python from now on; `end` stops it, and returns the rows of the table. */
async function watchInPython() {
  const folder = await tempFolder("python-viewer");
  const output = folder.file("watched.ts");
  const ports = engines.slice(0, PYTHON_PEERS).map(({ p2pPort }) => p2pPort);
  const viewer = startPythonViewer(source.transportFile, output, [source.p2pPort, ...ports]);
  follow(viewer, "python");
  // Relays close connections that neither side uses.
  let lostSource = 0;
  viewer.child.stdout!.on("data", (text) => {
    lostSource += String(text).split(`"disconnected": "127.0.0.1:${source.p2pPort}"`).length - 1;
  });
  const end = async () => {
    const { cpuSeconds } = usageOf(viewer.pid);
    await viewer.stop();
    const state = viewer.output().split("\n").map(pythonViewerState).findLast(Boolean);
    const { marks, missing } = await marksOf(output);
    await folder.remove();
    return [
      [
        "viewer in Python: chunks verified; pieces played, missed",
        `${state?.chunks}; ${state?.pieces}, ${state?.missed}`,
      ],
      [
        "its packets missed; connections lost to the source, to relays",
        `${missing} of ${marks + missing}; ${lostSource}, ${state && state.disconnected - lostSource}`,
      ],
      ["its CPU seconds", cpuSeconds.toFixed(0)],
    ];
  };
  return { end };
}

/** Counts the marks of a file, and those missing between its first and last one. */
async function marksOf(file: string) {
  const reader = new MarkReader();
  let [marks, first, last] = [0, Number.NaN, Number.NaN];
  for await (const bytes of createReadStream(file))
    for (const { index } of reader.push(bytes as Uint8Array)) {
      if (marks++ === 0) first = index;
      last = index;
    }
  return { marks, missing: last - first + 1 - marks };
}

async function sample(): Promise<void> {
  while (remainingMs() > 0) {
    const mebibytes = (pid: number) => usageOf(pid).residentBytes / 2 ** 20;
    samples.push({
      engines: livingViewers().map(({ engine }) => mebibytes(engine.pid)),
      source: processGroup(source.pid).reduce((sum, pid) => sum + mebibytes(pid), 0),
      load: loadavg()[0]!,
    });
    console.error(
      `memory ${memory(samples.at(-1)!)} MiB, load ${loadavg()[0]!.toFixed(1)}, ${honestBans} bans`,
    );
    await pause(Math.min(MINUTE_MS, Math.max(0, remainingMs())));
  }
}

const cpuOf = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + usageOf(pid).cpuSeconds, 0);
const mean = (each: readonly number[]) => each.reduce((sum, value) => sum + value, 0) / each.length;
const memory = ({ engines, source: own }: Sample) =>
  `${mean(engines).toFixed(0)}, ${Math.max(...engines).toFixed(0)}, ${own.toFixed(0)}`;

try {
  if (values.logs) await mkdir(values.logs, { recursive: true });
  follow(source, "source");
  while (engines.length < count) engines.push(await start());
  measureAt = performance.now() + count * JOIN_MS + SETTLE_MS;
  endAt = measureAt + runMs;
  const control = watch(watchUrl(source, source.magnet), "of the source");
  for (const engine of engines) {
    join(engine);
    await pause(JOIN_MS);
  }
  console.error(
    `${count} engines watch; ${values.killed} % are killed each minute, ${values.hostile} are hostile`,
  );
  const python = values.python ? await watchInPython() : undefined;
  const startedAt = performance.now();
  const sourcePids = processGroup(source.pid);
  const sourceCpu = cpuOf(sourcePids);
  const engineCpu = new Map(viewers.map(({ engine: { pid } }) => [pid, cpuOf([pid])]));
  const kinds: AttackKind[] = [];
  await Promise.all([
    churn(),
    sample(),
    ...Array.from({ length: Number(values.hostile) }, () => attack(kinds)),
  ]);
  const pythonRows = (await python?.end()) ?? [];
  const cpuSeconds = (performance.now() - startedAt) / 1_000;
  const shares = livingViewers().flatMap(({ engine: { pid } }) =>
    engineCpu.has(pid) ? [(100 * (cpuOf([pid]) - engineCpu.get(pid)!)) / cpuSeconds] : [],
  );
  const sourceShare = (100 * (cpuOf(sourcePids) - sourceCpu)) / cpuSeconds;
  const seen = await Promise.all(
    viewers.map(async (viewer) => ({ ...(await viewer.watched), isKilled: viewer.isKilled })),
  );
  const own = await control;
  const stayed = seen.filter(({ isKilled }) => !isKilled);
  const stat = await sourceFigures();
  const delays = stayed.flatMap(({ delaysMs }) => delaysMs).sort((a, b) => a - b);
  const starts = stayed.map(({ secondMs }) => secondMs).sort((a, b) => a - b);
  const missing = stayed.reduce((sum, each) => sum + each.missing, 0);
  const marks = stayed.reduce((sum, each) => sum + each.marks, 0);
  const seconds = (performance.now() - startedAt) / 1_000;
  const stalls = (watched: readonly Watched[]) =>
    `${watched.reduce((sum, each) => sum + each.stalls, 0)} (${Math.max(...watched.map((each) => each.longestPauseMs)).toFixed(0)} ms)`;
  const rows = [
    ["viewers that stayed; killed and replaced", `${stayed.length}; ${killed}`],
    [
      "packets they missed",
      `${missing} of ${marks + missing} (by ${stayed.filter((each) => each.missing > 0).length} viewers)`,
    ],
    ["packets missed by each viewer", stayed.map((each) => each.missing).join(" ")],
    ["streams that ended before their time", String(stayed.filter(({ problem }) => problem).length)],
    ["pauses over 500 ms, and the longest, of all viewers", stalls(stayed)],
    ["the same of a player at the source; packets missed", `${stalls([own])}; ${own.missing}`],
    ["delay p50 / p95 / p99.9, ms", [0.5, 0.95, 0.999].map((q) => quantile(delays, q)).join(" / ")],
    [
      "request → a second of media p50 / p95, ms",
      [0.5, 0.95].map((q) => quantile(starts, q).toFixed(0)).join(" / "),
    ],
    ["source upload, × the rate", (stat.uploaded / seconds / bytesPerSecond).toFixed(2)],
    [
      "CPU of an engine p50 / most, % of a core",
      [0.5, 1]
        .map((q) =>
          quantile(
            shares.sort((a, b) => a - b),
            q,
          ).toFixed(1),
        )
        .join(" / "),
    ],
    ["CPU of the source with its input, % of a core", sourceShare.toFixed(1)],
    ...pythonRows,
    ["attacks, of different kinds", `${hostile.attacks}, ${hostile.kinds.size} of ${ATTACK_KINDS.length}`],
    ["CPU of the hostile peers, % of a core", (hostile.cpuMs / 10 / seconds).toFixed(1)],
    ["bans of honest peers", String(honestBans)],
    ["MiB first: mean and largest engine, source with its input", memory(samples[0]!)],
    ["the same last", memory(samples.at(-1)!)],
    [
      "load least / mean / most",
      [Math.min, (...each: number[]) => mean(each), Math.max]
        .map((f) => f(...samples.map(({ load }) => load)).toFixed(1))
        .join(" / "),
    ],
  ];
  console.log(`${cpus().length} × ${cpus()[0]?.model}\n`);
  console.log(markdownTable([`${count} engines, ${values.kbit} kbit/s, ${values.minutes} min`, ""], rows));
  if (values.json)
    await writeFile(
      values.json,
      JSON.stringify({
        ...{ delays, starts, missing, marks, samples },
        seen: stayed.map(({ delaysMs, ...rest }) => rest),
      }),
    );
} finally {
  for (const { child } of strangers) child.kill("SIGKILL");
  for (const { child } of [...engines, ...viewers.map(({ engine }) => engine)]) child.kill("SIGKILL");
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
