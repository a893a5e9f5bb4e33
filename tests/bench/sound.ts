import { mkdir } from "node:fs/promises";
import { type RuntimeName, startEngine, startSession } from "../parts/engine.ts";
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

/** Measures the conversion of audio to AAC: CPU at playing speed beside ffmpeg, and how long the first segment takes. */
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
      rows.push([name, "ffmpeg", share(await repeat(rounds, () => ffmpegConvert(file))), ""]);
      for (const runtime of runtimes) {
        const played = await repeat(rounds, () => playOnce(magnetOf(torrent.infohash, seeder), runtime));
        const added = played.map(({ converted, plain }) => Math.max(0, converted - plain));
        const first = median(played.map(({ firstMs }) => firstMs)).toFixed(0);
        rows.push([name, `Sluice on ${runtime}`, share(added), first]);
      }
    } finally {
      await seeder.stop();
    }
  }
  return markdownTable(["audio to AAC stereo", "with", "of a core", "first HLS segments, ms"], rows);
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

/** CPU seconds of a new engine for the whole film with and without conversion, and the time of its first segments. */
async function playOnce(magnet: string, runtime: RuntimeName) {
  const engine = await startEngine({ runtime, env: QUIET });
  try {
    const began = performance.now();
    const session = await startSession(engine, "manifest.m3u8", { magnet, transcode_audio: "1" });
    const lines = async (url: string) => (await (await fetch(url)).text()).split("\n");
    const master = await lines(session.playback_url);
    const lists = [
      /URI="([^"]*audio=\d+)"/.exec(master.join("\n"))![1]!,
      master.find((line) => /^http/.test(line))!,
    ];
    await Promise.all(
      lists.map(async (url) => {
        const first = (await lines(url)).find((line) => /^http/.test(line))!;
        await (await fetch(first)).arrayBuffer();
      }),
    );
    const firstMs = performance.now() - began;
    const drain = async (query: string) => {
      const before = usageOf(engine.pid).cpuSeconds;
      const url = `${engine.url}/ace/getstream?magnet=${encodeURIComponent(magnet)}${query}`;
      for (const reader = (await fetch(url)).body!.getReader(); !(await reader.read()).done; );
      return usageOf(engine.pid).cpuSeconds - before;
    };
    return { firstMs, plain: await drain(""), converted: await drain("&transcode_audio=1") };
  } finally {
    await engine.stop();
  }
}
