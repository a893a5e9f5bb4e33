// `bun tests/bench/hls-crowd.ts [--viewers 1,10,100,1000 --channels 1,10 --seconds 20 --kills 0]`: viewers of live HLS behind nginx, three
// engines and a Redis server, all on this machine. Prints the CPU of each part and draws docs/images/crowd.svg. With `--kills N` the engine
// that serves is killed and started again N times, every `--seconds`. `--nice=-15` gives all of it priority over other programs (as root).
// `--alone`: the viewers read from one engine, without nginx.
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MAX_BROADCASTS } from "../../src/live/broadcast/broadcasts.ts";
import { edgeExample, startNginxWith } from "../interop/nginx.ts";
import { startRedis } from "../interop/redis-server.ts";
import { type EngineProcess, runtimeCommand, startEngine } from "../parts/engine.ts";
import { startProcess, usageOf } from "../parts/process.ts";
import { tempFolder } from "../parts/torrent-files.ts";
import { charts, type Point } from "./chart.ts";
import type { LoadReport } from "./hls-load.ts";
import { markdownTable } from "./table.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PICTURE = fileURLToPath(new URL("../../docs/images/crowd.svg", import.meta.url));
const MIB = 2 ** 20;

const { values } = parseArgs({
  options: {
    viewers: { type: "string", default: "1,10,100,1000" },
    channels: { type: "string", default: "1" },
    seconds: { type: "string", default: "20" },
    kills: { type: "string", default: "0" },
    nice: { type: "string" },
    alone: { type: "boolean", default: false },
  },
});
const numbers = (text: string) => text.split(",").map(Number);
const kills = Number(values.kills);
// Priorities count within a session only, and those of sessions among each other.
if (values.nice) await writeFile("/proc/self/autogroup", values.nice);
const scratch = await tempFolder("crowd");
const rows: string[][] = [];
const panels: { title: string; points: Point[] }[] = [];
try {
  for (const channels of numbers(values.channels)) await measureChannels(channels);
} finally {
  await scratch.remove();
}
if (kills === 0 && !values.alone) await writeFile(PICTURE, charts(panels));
const head = [
  "channels",
  "viewers",
  "nginx",
  "engines",
  "Redis",
  "sources",
  "generator",
  "engines MiB",
  "segments",
];
const more = ["Mbit/s", "asked for more than once", "errors", "missed", "cut", "p50 ms", "p99 ms"];
console.log(markdownTable([...head, ...more], rows));

async function measureChannels(channels: number): Promise<void> {
  const redis = await startRedis(scratch.file(`redis-${channels}`));
  const engines: EngineProcess[] = [];
  const sources: EngineProcess[] = [];
  const start = (n: number) =>
    startEngine({
      env: {
        ...{ SLUICE_STORE: redis.url, SLUICE_ALLOWED_HOSTS: "edge.test", SLUICE_LOG: "error" },
        // The engines find the source as with any tracker.
        SLUICE_TRACKERS: sources.map(({ url }) => `${url}/announce`).join(","),
        ...{ SLUICE_MAX_TRANSFERS: "1000", SLUICE_MAX_HTTP_CONNECTIONS: "40000" },
      },
      dataDir: scratch.file(`engine-${channels}-${n}`),
      ...(ports[n] !== undefined && { httpPort: ports[n] }),
    });
  const ports: number[] = [];
  try {
    const infohashes: string[] = [];
    for (let n = 0; n < channels; n++) {
      if (n % MAX_BROADCASTS === 0) {
        const dataDir = scratch.file(`source-${channels}-${n}`);
        const env = { SLUICE_TRACKER_SERVER: "own", SLUICE_LOG: "error" };
        sources.push(await startEngine({ env, dataDir }));
      }
      infohashes.push(await startChannel(sources.at(-1)!, `${n}`));
    }
    for (let n = 0; n < (values.alone ? 1 : 3); n++) {
      const engine = await start(n);
      engines.push(engine);
      ports.push(Number(new URL(engine.url).port));
    }
    const log = scratch.file(`asked-${channels}.log`);
    const folder = scratch.file(`nginx-${channels}`);
    const nginx = await startNginxWith((port) => edgeExample(engines, port, folder, log), folder);
    try {
      const { url } = values.alone ? engines[0]! : nginx;
      const urls = infohashes.map((infohash) => `${url}/live/${infohash}/index.m3u8`);
      const perViewers: Point[][] = [[], []];
      for (const viewers of numbers(values.viewers)) {
        await writeFile(log, "");
        const [command, ...args] = runtimeCommand();
        const load = startProcess(command, [...args, "tests/bench/hls-load.ts", `${viewers}`, ...urls], {
          cwd: ROOT,
        });
        await load.line((line) => line === "watching", 180_000);
        load.child.kill("SIGUSR2");
        const parts = () => ({
          nginx: usageOf(nginx.pid).cpuSeconds,
          engines: secondsOf(engines),
          redis: usageOf(redis.pid).cpuSeconds,
          sources: secondsOf(sources),
          load: usageOf(load.pid).cpuSeconds,
        });
        const [before, begun] = [parts(), performance.now()];
        for (let kill = 0; kill < kills; kill++) {
          await pause(Number(values.seconds) * 1_000);
          const lines = (await readFile(log, "utf8")).trim().split("\n");
          const serving = lines.at(-1)!.split(" ").at(-2)!.split(",").at(-1)!;
          const at = engines.findIndex(({ url }) => url.endsWith(serving));
          engines[at]!.child.kill("SIGKILL");
          console.error(`killed the engine at ${serving}`);
          await pause(2_000);
          engines[at] = await start(at);
        }
        await pause(Number(values.seconds) * 1_000);
        const [after, elapsed] = [parts(), performance.now() - begun];
        const memory = engines.reduce((sum, { pid }) => sum + usageOf(pid).residentBytes, 0);
        load.child.kill("SIGTERM");
        const report = JSON.parse(await load.line((line) => line.startsWith("{"))) as LoadReport;
        await load.stop();
        const share = (part: keyof typeof before) => (100_000 * (after[part] - before[part])) / elapsed;
        const asked = countsOf(await readFile(log, "utf8"));
        rows.push([
          ...[String(channels), viewers.toLocaleString("en")],
          // Engines that were killed took their time with them.
          ...(["nginx", "engines", "redis", "sources", "load"] as const).map((part) =>
            part === "engines" && kills > 0 ? "" : `${share(part).toFixed(1)} %`,
          ),
          ...[
            (memory / MIB).toFixed(0),
            report.segments.toLocaleString("en"),
            ((report.bytes * 8) / 1000 / elapsed).toFixed(0),
            `${asked.repeated} of ${asked.all}`,
          ],
          ...[report.errorCount, report.missed, report.cut, report.p50, report.p99].map(String),
        ]);
        console.error(rows.at(-1)!.join(" | "), report.errors, `longest ${report.max} ms`);
        perViewers[0]!.push({ size: viewers, value: share("nginx") });
        perViewers[1]!.push({ size: viewers, value: share("engines") });
      }
      const of = `${channels} live channel${channels > 1 ? "s" : ""}`;
      panels.push({ title: `${of}: nginx, % of a core`, points: perViewers[0]! });
      panels.push({ title: `${of}: 3 engines, % of a core`, points: perViewers[1]! });
    } finally {
      await nginx.stop();
    }
  } finally {
    await Promise.all([...engines, ...sources].map((one) => one.stop()));
    await redis.stop();
  }
}

function secondsOf(engines: readonly EngineProcess[]): number {
  return engines.reduce((sum, { pid }) => sum + usageOf(pid).cpuSeconds, 0);
}

/** Starts a broadcast of the test pattern, and returns its infohash. */
async function startChannel({ url }: EngineProcess, name: string): Promise<string> {
  const call = async (query: Record<string, string>) => {
    const answer = await fetch(`${url}/server/api?${new URLSearchParams({ api_version: "3", ...query })}`);
    return ((await answer.json()) as { result: Record<string, string> }).result;
  };
  const { token } = await call({ method: "get_api_access_token" });
  const asked = { method: "broadcast_start", test_pattern: "1", name, token: token! };
  return (await call(asked)).infohash!;
}

/** How many segments nginx has requested from an engine, and how many of these more than once with success. */
function countsOf(log: string): { readonly all: number; readonly repeated: number } {
  const counts = new Map<string, number>();
  for (const line of log.split("\n")) {
    const [path, , status] = line.split(" ");
    if (!path?.endsWith(".ts") || !/(^|,)200$/.test(status ?? "")) continue;
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return { all: counts.size, repeated: [...counts.values()].filter((count) => count > 1).length };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
