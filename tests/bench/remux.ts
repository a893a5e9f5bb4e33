import { mkdir, stat } from "node:fs/promises";
import { basename } from "node:path";
import { type RuntimeName, startEngine, startSession } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { run, startProcess, usageOf } from "../parts/process.ts";
import { type TempFolder, torrentOf } from "../parts/torrent-files.ts";
import { markdownTable, median } from "./table.ts";

/**
 * Measures playing a long MP4 and the same film as Matroska as MPEG-TS, compared with `ffmpeg -c copy` of the local file in the same
 * rounds, and requesting segments far from the playhead.
 */
export async function benchRemux(
  scratch: TempFolder,
  size: number,
  rounds: number,
  runtimes: readonly RuntimeName[],
): Promise<string> {
  await mkdir(scratch.file("media"), { recursive: true });
  const mp4 = scratch.file("media/film.mp4");
  await makeFilm(mp4, scratch, size);
  const mkv = scratch.file("media/film.mkv");
  await run("ffmpeg", ["-v", "error", "-y", "-i", mp4, "-c", "copy", mkv]);
  const parts = [
    await withFilm(scratch, mp4, (film) => benchFilm("MP4", film, mp4, rounds, runtimes)),
    await withFilm(scratch, mkv, (film) => benchFilm("Matroska", film, mkv, rounds, runtimes)),
    await withFilm(scratch, mp4, (film) => benchSegments(film, Math.max(rounds, 5))),
  ];
  return parts.join("\n\n");
}

/** Runs `work` while a seeder has the film. */
async function withFilm<T>(scratch: TempFolder, file: string, work: (film: Film) => Promise<T>): Promise<T> {
  const name = basename(file);
  const torrent = await torrentOf(file, 1024 * 1024, scratch.file(`${name}.torrent`));
  const seeder = await startLibtorrent("seed", torrent.path, scratch.file("media"));
  try {
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    return await work({ magnet, infohash: torrent.infohash, name });
  } finally {
    await seeder.stop();
  }
}

/** One table: ffmpeg, then the film as MPEG-TS and as it is, on each runtime. Each round runs all of them. */
async function benchFilm(
  title: string,
  film: Film,
  file: string,
  rounds: number,
  runtimes: readonly RuntimeName[],
): Promise<string> {
  const gib = (await stat(file)).size / 1024 ** 3;
  const copies: number[] = [];
  const drains = new Map<string, Drain[]>();
  for (let round = 0; round < rounds; round++) {
    copies.push(await ffmpegCopy(file));
    for (const runtime of runtimes)
      for (const as of ["raw", "ts"] as const) {
        const key = `${runtime} ${as}`;
        const drain = await drainOnce(film, runtime, as);
        drains.set(key, [...(drains.get(key) ?? []), drain]);
        console.error(`round ${round + 1}: ${title}: ${key}: ${drain.cpuSeconds.toFixed(2)} CPU s`);
      }
  }
  const copied = median(copies);
  const rows = [["ffmpeg -c copy, local file", (copied / gib).toFixed(2), "1.00 ×", "", ""]];
  const costOf = (cpu: number) => [(cpu / gib).toFixed(2), `${(cpu / copied).toFixed(2)} ×`];
  for (const runtime of runtimes) {
    const cpu = { raw: 0, ts: 0 };
    for (const [as, what] of [
      ["ts", "swarm, verify, remux, HTTP"],
      ["raw", "the same file raw"],
    ] as const) {
      const all = drains.get(`${runtime} ${as}`)!;
      cpu[as] = median(all.map(({ cpuSeconds }) => cpuSeconds));
      const speed = (gib * 1073.74) / median(all.map(({ seconds }) => seconds));
      const peak = median(all.map(({ peakBytes }) => peakBytes)) / 1e6;
      rows.push([`Sluice on ${runtime}: ${what}`, ...costOf(cpu[as]), speed.toFixed(0), peak.toFixed(0)]);
    }
    rows.push([`Sluice on ${runtime}: the difference`, ...costOf(Math.max(0, cpu.ts - cpu.raw)), "", ""]);
  }
  return markdownTable([`${title} → TS`, "CPU s/GiB", "to ffmpeg", "MB/s", "peak MB"], rows);
}

/** The query that names a film. */
interface Film {
  readonly magnet: string;
  readonly infohash: string;
  readonly name: string;
}

interface Drain {
  readonly cpuSeconds: number;
  readonly seconds: number;
  readonly peakBytes: number;
}

const QUIET = { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" };

async function repeat<T>(times: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let i = 0; i < times; i++) results.push(await work());
  return results;
}

/** The whole film through an engine of its own, so that its peak is this film's alone. */
async function drainOnce(
  { magnet, infohash, name }: Film,
  runtime: RuntimeName,
  as: "raw" | "ts",
): Promise<Drain> {
  const engine = await startEngine({ runtime, env: QUIET });
  try {
    const before = usageOf(engine.pid).cpuSeconds;
    const began = performance.now();
    await startSession(engine, "getstream", { magnet });
    const path = as === "raw" ? `files/${infohash}/0/${name}` : `ace/getstream?infohash=${infohash}`;
    const url = `${engine.url}/${path}`;
    const curl = startProcess("curl", ["-sfL", "-o", "/dev/null", "-w", "%{size_download}\\n", url]);
    await curl.line((line) => /^\d+$/.test(line), 300_000);
    const seconds = (performance.now() - began) / 1000;
    const { cpuSeconds, peakBytes } = usageOf(engine.pid);
    return { cpuSeconds: cpuSeconds - before, seconds, peakBytes };
  } finally {
    await engine.stop();
  }
}

/** Times whole HLS segments far from the playhead, each in an engine that has only the beginning. */
async function benchSegments(film: Film, rounds: number): Promise<string> {
  const cases: [name: string, place: number][] = [
    ["segment three quarters in", 0.75],
    ["segment at the end", 1],
  ];
  const rows: string[][] = [];
  for (const [name, place] of cases) {
    const times = await repeat(rounds, () => farSegment(film, place));
    const [middle, least, most] = [median(times), Math.min(...times), Math.max(...times)];
    rows.push([name, middle.toFixed(0), least.toFixed(0), most.toFixed(0)]);
  }
  return markdownTable(["HLS on Bun, whole segments of 6 s", "median ms", "min", "max"], rows);
}

async function farSegment({ magnet }: Film, place: number): Promise<number> {
  const engine = await startEngine({ env: QUIET });
  try {
    const session = await startSession(engine, "manifest.m3u8", { magnet });
    const manifest = await (await fetch(session.playback_url)).text();
    const names = manifest.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    const url = (index: number) => new URL(names[index]!, session.playback_url);
    await (await fetch(url(0))).arrayBuffer();
    const began = performance.now();
    const answer = await fetch(url(Math.min(names.length - 1, Math.floor(place * names.length))));
    await answer.arrayBuffer();
    if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}`);
    return performance.now() - began;
  } finally {
    await engine.stop();
  }
}

/** A film of about `size` bytes: one encoded minute, repeated without encoding again. */
async function makeFilm(file: string, scratch: TempFolder, size: number): Promise<void> {
  const minute = scratch.file("media/minute.mp4");
  const sources = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25", "-f", "lavfi", "-i", "sine=440"];
  const codecs = [
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-b:v",
    "8M",
    "-bf",
    "2",
    "-g",
    "50",
    "-c:a",
    "aac",
  ];
  const noise = ["-vf", "noise=alls=40:allf=t", "-t", "30"];
  await run("ffmpeg", ["-v", "error", "-y", ...sources, ...noise, ...codecs, minute]);
  const times = Math.max(0, Math.ceil(size / (await stat(minute)).size) - 1);
  await run("ffmpeg", ["-v", "error", "-y", "-stream_loop", String(times), "-i", minute, "-c", "copy", file]);
}

async function ffmpegCopy(file: string): Promise<number> {
  const said = await run("bash", [
    "-c",
    'TIMEFORMAT="cpu %U %S"; time ffmpeg -v error -i "$0" -c copy -f mpegts - > /dev/null',
    file,
  ]);
  const [, user, system] = /cpu ([\d.]+) ([\d.]+)/.exec(said)!;
  return Number(user) + Number(system);
}
