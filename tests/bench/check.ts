// `npm run bench:check [-- --rounds 3 --size MIB --record]`: five short ratios of Sluice on Bun to libtorrent and webtorrent, all
// measured in turn in one run, beside the recorded ratios. Exits with 1 if a ratio is worse than the noise explains.
// `--record` replaces the recorded ratios.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { randomFile, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { type Job, libtorrentDownload, sluiceDownload, webtorrentDownload } from "./downloaders.ts";
import { compareRatio, type RecordedRatio } from "./ratio.ts";
import { markdownTable } from "./table.ts";

const RECORD = new URL("recorded.json", import.meta.url);
const MEMORY_ONLY = { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" };

const { values } = parseArgs({
  options: {
    size: { type: "string", default: "192" },
    rounds: { type: "string", default: "3" },
    record: { type: "boolean", default: false },
  },
});
const size = Number(values.size) * 1024 * 1024;
const scratch = await tempFolder("check");
try {
  await mkdir(scratch.file("seed"));
  const file = scratch.file("seed/film.bin");
  await randomFile(file, size);
  const torrent = await torrentOf(file, 1024 * 1024, scratch.file("film.torrent"));
  const seeder = await startLibtorrent("seed", torrent.path, scratch.file("seed"));
  const utpSeeder = await startLibtorrent("seed", torrent.path, scratch.file("seed"), { flags: ["--utp"] });
  const jobOf = (port: number): Job => {
    const address = `127.0.0.1:${port}`;
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=film.bin&x.pe=${address}`;
    return { torrent, announced: torrent, size, seeder: address, magnet, scratch: scratch.path };
  };
  try {
    const job = jobOf(seeder.port);
    const ratios: Record<string, number[]> = {};
    const add = (name: string, ratio: number) => {
      ratios[name] = [...(ratios[name] ?? []), ratio];
    };
    for (let round = 0; round < Number(values.rounds); round++) {
      const libtorrent = await libtorrentDownload(job);
      const plain = await sluiceDownload(job, "bun", MEMORY_ONLY);
      const cached = await sluiceDownload(job, "bun", { SLUICE_LOG: "error" });
      const utp = await sluiceDownload(jobOf(utpSeeder.port), "bun", { ...MEMORY_ONLY, SLUICE_UTP: "on" });
      const webtorrent = await webtorrentDownload(job);
      add("CPU to libtorrent, no disk cache", plain.cpuSeconds / libtorrent.cpuSeconds);
      add("CPU to libtorrent, defaults", cached.cpuSeconds / libtorrent.cpuSeconds);
      add("CPU over uTP to libtorrent over TCP", utp.cpuSeconds / libtorrent.cpuSeconds);
      add("time to libtorrent, defaults", cached.seconds / libtorrent.seconds);
      add("memory to webtorrent, defaults", cached.peakBytes / webtorrent.peakBytes);
    }
    await report(ratios);
  } finally {
    await seeder.stop();
    await utpSeeder.stop();
  }
} finally {
  await scratch.remove();
}

async function report(ratios: Readonly<Record<string, readonly number[]>>): Promise<void> {
  const recorded = JSON.parse(await readFile(RECORD, "utf8")) as Record<string, RecordedRatio>;
  const results = Object.entries(ratios).map(([name, each]) => ({
    name,
    ...compareRatio(each, recorded[name]),
  }));
  const rows = results.map(({ name, ratio, lowest, highest, limit, isWorse }) => [
    name,
    `${ratio.toFixed(2)} ×`,
    `${lowest.toFixed(2)}–${highest.toFixed(2)}`,
    recorded[name] ? `${recorded[name].ratio.toFixed(2)} ×` : "none",
    `${limit.toFixed(2)} ×`,
    isWorse ? "WORSE" : "ok",
  ]);
  console.log(markdownTable(["lower is better", "now", "rounds", "recorded", "limit", ""], rows));
  if (values.record) {
    const now = results.map(({ name, ratio, lowest, highest }) => [name, { ratio, lowest, highest }]);
    await writeFile(RECORD, `${JSON.stringify(Object.fromEntries(now), rounded, 2)}\n`);
  } else if (results.some(({ isWorse }) => isWorse)) process.exitCode = 1;
}

function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toFixed(2)) : value;
}
