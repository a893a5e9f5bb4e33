import { mkdir, stat } from "node:fs/promises";
import { startEngine, startSession } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { run, startProcess, usageOf } from "../parts/process.ts";
import { type TempFolder, torrentOf } from "../parts/torrent-files.ts";
import { markdownTable } from "./table.ts";

/** CPU of MP4 → TS through the whole engine, and of the remuxing alone, beside `ffmpeg -c copy` of the local file. */
export async function benchRemux(scratch: TempFolder, size: number): Promise<string> {
  await mkdir(scratch.file("media"), { recursive: true });
  const file = scratch.file("media/film.mp4");
  await makeFilm(file, scratch, size);
  const bytes = (await stat(file)).size;
  const gib = bytes / 1024 ** 3;
  const copied = await ffmpegCopy(file);
  const torrent = await torrentOf(file, 1024 * 1024, scratch.file("film-mp4.torrent"));
  const seeder = await startLibtorrent("seed", torrent.path, scratch.file("media"));
  const engine = await startEngine({ env: { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" } });
  try {
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${seeder.port}`;
    await startSession(engine, "getstream", { magnet });
    const raw = await drain(engine.pid, `${engine.url}/files/${torrent.infohash}/0/film.mp4`);
    const before = usageOf(engine.pid);
    await drain(engine.pid, `${engine.url}/ace/getstream?infohash=${torrent.infohash}`);
    const after = usageOf(engine.pid);
    const row = (name: string, cpu: number) => [
      name,
      (cpu / gib).toFixed(2),
      `${(cpu / copied).toFixed(2)} ×`,
    ];
    const remuxed = after.cpuSeconds - before.cpuSeconds;
    const rows = [
      row("ffmpeg -c copy, local file", copied),
      row("Sluice: swarm, verify, remux, HTTP", remuxed),
      row("Sluice: the same without remuxing (raw file)", raw),
      row("Sluice: the remuxing alone (the difference)", Math.max(0, remuxed - raw)),
    ];
    return `${markdownTable(["MP4 → TS", "CPU s/GiB", "to ffmpeg"], rows)}

peak memory ${(after.peakBytes / 1e6).toFixed(0)} MB`;
  } finally {
    await engine.stop();
    await seeder.stop();
  }
}

async function drain(pid: number, url: string): Promise<number> {
  const before = usageOf(pid).cpuSeconds;
  const curl = startProcess("curl", ["-sfL", "-o", "/dev/null", "-w", "%{size_download}\\n", url]);
  await curl.line((line) => /^\d+$/.test(line), 300_000);
  return usageOf(pid).cpuSeconds - before;
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
