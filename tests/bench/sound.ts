import { mkdir } from "node:fs/promises";
import { type EngineProcess, type RuntimeName, startEngine, startSession } from "../parts/engine.ts";
import { type PlainSeeder, startSeeder } from "../parts/plain-seeder.ts";
import { run, usageOf } from "../parts/process.ts";
import { type TempFolder, torrentOf } from "../parts/torrent-files.ts";
import { markdownTable, median } from "./table.ts";

/** Length of the films in seconds. */
const SECONDS = 120;
/** What ffmpeg makes the audio with; pink noise is as hard to encode as music. */
const CODECS: readonly (readonly [codec: string, args: readonly string[]])[] = [
  ["AC-3 5.1", ["ac3", "-ac", "6", "-b:a", "448k"]],
  ["E-AC-3", ["eac3", "-b:a", "224k"]],
  ["DTS 5.1", ["dca", "-strict", "-2", "-ac", "6", "-b:a", "768k"]],
  ["MP2", ["mp2", "-b:a", "192k"]],
];
const QUIET = { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" };

/** Measures the conversion of audio to AAC: CPU at playing speed beside ffmpeg, and how much later a start and a seek are. */
export async function benchSound(
  scratch: TempFolder,
  rounds: number,
  runtimes: readonly RuntimeName[],
): Promise<string> {
  const rows: string[][] = [];
  for (const [index, [name, codec]] of CODECS.entries()) {
    await mkdir(scratch.file(`sound-${index}`), { recursive: true });
    const file = scratch.file(`sound-${index}/film.mkv`);
    const picture = `testsrc2=size=640x360:rate=25:duration=${SECONDS}`;
    const sound = `anoisesrc=color=pink:amplitude=0.3:sample_rate=48000:duration=${SECONDS}`;
    const made = ["-v", "error", "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", sound];
    const encoded = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-c:a", ...codec];
    await run("ffmpeg", [...made, ...encoded, file]);
    const torrent = await torrentOf(file, 1024 * 1024, scratch.file(`sound-${index}.torrent`));
    const seeder = await startSeeder(torrent, scratch.file(`sound-${index}`));
    try {
      const share = (seconds: readonly number[]) => `${((100 * median(seconds)) / SECONDS).toFixed(1)} %`;
      rows.push([name, "ffmpeg", share(await repeat(rounds, () => ffmpegConvert(file))), "", ""]);
      for (const runtime of runtimes) {
        const played = await repeat(rounds, () => playOnce(magnetOf(torrent.infohash, seeder), runtime));
        const added = played.map(({ converted, plain }) => Math.max(0, converted - plain));
        const extra = (of: (one: Played) => number) => `${median(played.map(of)).toFixed(0)} ms`;
        const waits = [extra(({ startMs }) => startMs), extra(({ seekMs }) => seekMs)];
        rows.push([name, `Sluice on ${runtime}`, share(added), ...waits]);
      }
    } finally {
      await seeder.stop();
    }
  }
  return markdownTable(["audio to AAC stereo", "with", "of a core", "start of a new engine", "seek"], rows);
}

function magnetOf(infohash: string, { port }: PlainSeeder): string {
  return `magnet:?xt=urn:btih:${infohash}&x.pe=127.0.0.1:${port}`;
}

async function repeat<T>(times: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let i = 0; i < times; i++) results.push(await work());
  return results;
}

/** CPU seconds of ffmpeg for the same conversion of the local file. */
async function ffmpegConvert(file: string): Promise<number> {
  const audio = ["-c:a", "aac", "-ac", "2", "-b:a", "256k"];
  const convert = ["-benchmark", "-i", file, "-c:v", "copy", ...audio, "-f", "mpegts", "-y", "/dev/null"];
  const printed = await run("sh", ["-c", 'ffmpeg "$@" 2>&1', "ffmpeg", ...convert]);
  const [, user = "0", system = "0"] = /utime=([\d.]+)s stime=([\d.]+)s/.exec(printed) ?? [];
  return Number(user) + Number(system);
}

/** What one engine takes. */
interface Played {
  /** CPU seconds for the whole film with conversion, and without. */
  readonly converted: number;
  readonly plain: number;
  /** How much longer than without conversion the first segments take, and those after a seek. */
  readonly startMs: number;
  readonly seekMs: number;
}

async function playOnce(magnet: string, runtime: RuntimeName): Promise<Played> {
  const plainStart = await withEngine(runtime, async (engine) => (await startHls(engine, magnet, {})).ms);
  return withEngine(runtime, async (engine) => {
    const { ms, lists } = await startHls(engine, magnet, { transcode_audio: "1" });
    const seekMs = await seeks(lists);
    const drain = async (query: string) => {
      const before = usageOf(engine.pid).cpuSeconds;
      const url = `${engine.url}/ace/getstream?magnet=${encodeURIComponent(magnet)}${query}`;
      for (const reader = (await fetch(url)).body!.getReader(); !(await reader.read()).done; );
      return usageOf(engine.pid).cpuSeconds - before;
    };
    const [plain, converted] = [await drain(""), await drain("&transcode_audio=1")];
    return { plain, converted, startMs: ms - plainStart, seekMs };
  });
}

async function withEngine<T>(runtime: RuntimeName, work: (engine: EngineProcess) => Promise<T>): Promise<T> {
  const engine = await startEngine({ runtime, env: QUIET });
  try {
    return await work(engine);
  } finally {
    await engine.stop();
  }
}

/** A segment of a media playlist. */
interface ListedSegment {
  readonly url: string;
  readonly startSeconds: number;
}

/** Starts a session, and loads the first segments of picture and sound. */
async function startHls(engine: EngineProcess, magnet: string, query: Record<string, string>) {
  const began = performance.now();
  const session = await startSession(engine, "manifest.m3u8", { magnet, ...query });
  const master = await textOf(session.playback_url);
  const audio = [...master.matchAll(/URI="([^"]*audio=\d+)"/g)].map(([, url]) => url!);
  const picture = master.split("\n").find((line) => /^http.*rendition=media/.test(line));
  const lists = await Promise.all([picture ?? session.playback_url, ...audio].map(segmentsOf));
  await load(lists.slice(0, 2).map(([first]) => first!));
  return { ms: performance.now() - began, lists };
}

/**
 * Returns how much longer picture and converted sound take after a seek than picture and sound of the film: the difference of the medians of
 * as many seeks each, none of them to a place that is loaded.
 */
async function seeks([picture, converted, original]: readonly ListedSegment[][]): Promise<number> {
  const times: [plain: number[], converted: number[]] = [[], []];
  for (const [i, segment] of [...picture!.entries()].slice(3, -1)) {
    const sound = (i % 2 === 1 ? converted! : original!).findLast(
      ({ startSeconds }) => startSeconds <= segment.startSeconds + 0.1,
    );
    const began = performance.now();
    await load([segment, sound!]);
    times[i % 2]!.push(performance.now() - began);
  }
  return median(times[1]) - median(times[0]);
}

async function load(segments: readonly ListedSegment[]): Promise<void> {
  await Promise.all(segments.map(async ({ url }) => (await fetch(url)).arrayBuffer()));
}

async function segmentsOf(url: string): Promise<ListedSegment[]> {
  let end = 0;
  return [...(await textOf(url)).matchAll(/#EXTINF:([\d.]+).*\n(\S+)/g)].map(([, seconds, uri]) => {
    const startSeconds = end;
    end += Number(seconds);
    return { url: uri!, startSeconds };
  });
}

async function textOf(url: string): Promise<string> {
  return (await fetch(url)).text();
}
