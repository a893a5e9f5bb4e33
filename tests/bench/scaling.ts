import { createHash, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type EngineProcess,
  nameContent,
  runtimeCommand,
  startEngine,
  startSession,
} from "../parts/engine.ts";
import { startBroadcast, watchUrl } from "../parts/live-broadcast.ts";
import { type RunningProcess, startProcess, usageOf } from "../parts/process.ts";
import { charts, type Point } from "./chart.ts";
import type { LoadReport } from "./player-load.ts";
import { markdownTable } from "./table.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PICTURE = fileURLToPath(new URL("../../docs/images/scaling.svg", import.meta.url));
const MIB = 2 ** 20;
const QUIET = { SLUICE_LOG: "error" };
const PLAYER_SECONDS = 10;
const SWARM_SECONDS = 10;
const PLAYER_KBIT = 3_000;
/** Players whose packets are checked. */
const CHECKED_PLAYERS = 20;

/** How much of each thing is measured; larger numbers than these take long. */
export interface ScalingSizes {
  readonly players: readonly number[];
  readonly swarms: readonly number[];
  readonly pieces: readonly number[];
  readonly files: readonly number[];
}

/** Measures what one engine on Bun costs as things become many, and draws docs/images/scaling.svg. Returns tables. */
export async function benchScaling(sizes: ScalingSizes): Promise<string> {
  const parts: [
    title: string,
    unit: string,
    measure: (count: number) => Promise<Cost>,
    counts: readonly number[],
  ][] = [
    [`TS players of 3 Mbit/s`, "% of a core", players, sizes.players],
    ["swarms without peers", "% of a core", swarms, sizes.swarms],
    ["pieces of a torrent", "CPU ms to open", (count) => torrent(count, 1), sizes.pieces],
    ["files of a torrent", "CPU ms to open", (count) => torrent(count, count), sizes.files],
  ];
  const rows: string[][] = [];
  const panels: { title: string; points: Point[] }[] = [];
  for (const [title, unit, measure, counts] of parts) {
    const points: Point[] = [];
    for (const count of counts) {
      const { value, residentBytes, note = "" } = await measure(count);
      points.push({ size: count, value });
      rows.push([
        title,
        count.toLocaleString("en"),
        value.toFixed(1),
        unit,
        (residentBytes / MIB).toFixed(0),
        note,
      ]);
      console.error(
        `${title}: ${count}: ${value.toFixed(1)} ${unit}, ${(residentBytes / MIB).toFixed(0)} MiB ${note}`,
      );
    }
    panels.push({ title: `${title}: ${unit}`, points });
  }
  await mkdir(dirname(PICTURE), { recursive: true });
  await writeFile(PICTURE, charts(panels));
  return markdownTable(["of", "number", "cost", "unit", "MiB resident", ""], rows);
}

interface Cost {
  readonly value: number;
  readonly residentBytes: number;
  readonly note?: string;
}

/**
 * Players of one live stream: a process whose packets are checked, and curl for the others, because checking takes more CPU than serving.
 * Packets and the engine's CPU are
 * counted after all have started.
 */
async function players(count: number): Promise<Cost> {
  const source = await startBroadcast({ timedBytesPerSecond: PLAYER_KBIT * 125 });
  const engine = await startEngine({
    env: { ...QUIET, SLUICE_MAX_SESSIONS: `${count + 8}`, SLUICE_MAX_HTTP_CONNECTIONS: `${4 * count + 256}` },
  });
  const [command, ...args] = runtimeCommand();
  const url = watchUrl(engine, source.magnet);
  const checked = Math.min(count, CHECKED_PLAYERS);
  const load = startProcess(command, [...args, "tests/bench/player-load.ts", `${checked}`, url], {
    cwd: ROOT,
  });
  const others: RunningProcess[] = [];
  try {
    const rest = Array.from({ length: count - checked }, (_, i) => ["-o", "/dev/null", `${url}&pid=o${i}`]);
    const options = ["-LN", "--no-progress-meter", "-Z", "--parallel-max", "300", "--parallel-immediate"];
    // curl opens at most 300 connections at once.
    for (let at = 0; at < rest.length; at += 300)
      others.push(startProcess("curl", [...options, ...rest.slice(at, at + 300).flat()]));
    await load.line((line) => line.includes("playing"), 120_000);
    await pause(PLAYER_SECONDS + count / 50);
    load.child.kill("SIGUSR2");
    const before = usageOf(engine.pid).residentBytes;
    const cost = await share(engine, PLAYER_SECONDS);
    load.child.kill("SIGTERM");
    const report = JSON.parse(await load.line((line) => line.includes("missing"))) as LoadReport;
    const grown = (cost.residentBytes - before) / MIB;
    const { missing, marks, ended } = report;
    const note = `${missing} of ${marks + missing} packets missing for ${checked}, ${ended} ended, ${grown.toFixed(0)} MiB in ${PLAYER_SECONDS} s`;
    return { ...cost, note };
  } finally {
    for (const each of [load, ...others]) await each.stop();
    await engine.stop();
    await source.stop();
  }
}

async function swarms(count: number): Promise<Cost> {
  const engine = await startEngine({ env: { ...QUIET, SLUICE_TRANSFER_IDLE: "600" } });
  try {
    for (let i = 0; i < count; i++)
      await startSession(engine, "getstream", {}, transportOf(1_000, 1, "film.mp4"));
    await pause(3);
    return await share(engine, SWARM_SECONDS);
  } finally {
    await engine.stop();
  }
}

async function torrent(pieces: number, files: number): Promise<Cost> {
  const engine = await startEngine({ env: QUIET });
  try {
    // The first start of any content loads and compiles modules.
    await nameContent(engine, {}, transportOf(10, 1, "film.bin"));
    const bytes = transportOf(pieces, files, "film.bin");
    const before = usageOf(engine.pid).cpuSeconds;
    await nameContent(engine, {}, bytes);
    await pause(3);
    const { cpuSeconds, residentBytes } = usageOf(engine.pid);
    return { value: (cpuSeconds - before) * 1_000, residentBytes };
  } finally {
    await engine.stop();
  }
}

async function share(engine: EngineProcess, seconds: number): Promise<Cost> {
  const [before, began] = [usageOf(engine.pid).cpuSeconds, performance.now()];
  await pause(seconds);
  const { cpuSeconds, residentBytes } = usageOf(engine.pid);
  return { value: (100_000 * (cpuSeconds - before)) / (performance.now() - began), residentBytes };
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}

/** A transport file (BEP 3) of random content without trackers: `files` of equal length with `pieces` pieces of 16 KiB in total. */
function transportOf(pieces: number, files: number, name: string): Uint8Array {
  const pieceLength = 16_384;
  const length = (pieces * pieceLength) / files;
  const text = (value: string) => `${value.length}:${value}`;
  const root = text(createHash("sha1").update(randomBytes(20)).digest("hex"));
  const entry = (_: unknown, i: number) =>
    `d6:lengthi${length}e4:pathl${text(`d${i % 100}`)}${text(`${i}-${name}`)}ee`;
  const content =
    files === 1
      ? `6:lengthi${length}e4:name${text(name)}`
      : `5:filesl${Array.from({ length: files }, entry).join("")}e4:name${root}`;
  const head = `d4:infod${content}12:piece lengthi${pieceLength}e6:pieces${20 * pieces}:`;
  return Buffer.concat([Buffer.from(head), randomBytes(20 * pieces), Buffer.from("ee")]);
}
