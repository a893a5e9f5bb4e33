import type { RuntimeName } from "../parts/engine.ts";
import {
  type Cost,
  type Job,
  libtorrentDownload,
  sluiceDownload,
  webtorrentDownload,
} from "./downloaders.ts";
import { markdownTable, median } from "./table.ts";

const GIB = 1024 ** 3;

/** Downloads the same content with each downloader in turn, `rounds` times, and tabulates the medians. */
export async function benchDownloads(
  job: Job,
  rounds: number,
  runtimes: readonly RuntimeName[],
): Promise<string> {
  const memoryOnly = { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error" };
  const downloaders: [name: string, run: () => Promise<Cost>][] = [
    ["libtorrent, sequential", () => libtorrentDownload(job)],
    ["webtorrent on Bun", () => webtorrentDownload(job)],
    ...runtimes.map((runtime): [string, () => Promise<Cost>] => [
      `Sluice on ${runtime}, over HTTP`,
      () => sluiceDownload(job, runtime, memoryOnly),
    ]),
    ["Sluice on bun, over HTTP, disk cache", () => sluiceDownload(job, "bun", { SLUICE_LOG: "error" })],
  ];
  const costs = new Map<string, Cost[]>(downloaders.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, run] of downloaders) {
      const cost = await run();
      costs.get(name)!.push(cost);
      console.error(
        `round ${round + 1}: ${name}: ${cost.cpuSeconds.toFixed(2)} CPU s, ${cost.seconds.toFixed(2)} s`,
      );
    }
  }
  const figures = (name: string) => {
    const all = costs.get(name)!;
    return {
      cpu: (median(all.map((cost) => cost.cpuSeconds)) * GIB) / job.size,
      speed: job.size / 1e6 / median(all.map((cost) => cost.seconds)),
      peak: median(all.map((cost) => cost.peakBytes)) / 1e6,
    };
  };
  const base = figures("libtorrent, sequential");
  const rows = downloaders.map(([name]) => {
    const own = figures(name);
    return [
      name,
      own.cpu.toFixed(2),
      `${(own.cpu / base.cpu).toFixed(2)} ×`,
      own.speed.toFixed(0),
      `${(own.speed / base.speed).toFixed(2)} ×`,
      own.peak.toFixed(0),
    ];
  });
  return markdownTable(
    ["downloader", "CPU s/GiB", "to libtorrent", "MB/s", "to libtorrent", "peak MB"],
    rows,
  );
}
