import { mkdir } from "node:fs/promises";
import type { RuntimeName } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { randomFile, type TempFolder, torrentOf } from "../parts/torrent-files.ts";
import { type Cost, sluiceDownload } from "./downloaders.ts";
import { markdownTable, median } from "./table.ts";

const GIB = 1024 ** 3;
/** Engine settings and flags of the libtorrent seeder for each way to carry a peer connection. */
const TRANSPORTS: readonly [name: string, env: Record<string, string>, flags: readonly string[]][] = [
  ["TCP", {}, []],
  ["TCP, RC4", { SLUICE_ENCRYPTION: "require" }, ["--encryption", "required"]],
  ["uTP", { SLUICE_UTP: "on" }, ["--utp"]],
];

/** Downloads the same content over TCP, encrypted TCP and uTP in turn, and tabulates medians beside TCP on the same runtime. */
export async function benchTransports(
  scratch: TempFolder,
  size: number,
  rounds: number,
  runtimes: readonly RuntimeName[],
): Promise<string> {
  await mkdir(scratch.file("transports"));
  const file = scratch.file("transports/film.bin");
  await randomFile(file, size);
  const torrent = await torrentOf(file, 1024 * 1024, scratch.file("transports.torrent"));
  const costs = new Map<string, Cost[]>();
  for (let round = 0; round < rounds; round++) {
    for (const [name, env, flags] of TRANSPORTS) {
      for (const runtime of runtimes) {
        const seeder = await startLibtorrent("seed", torrent.path, scratch.file("transports"), { flags });
        try {
          await seeder.line((text) => text.includes('"seeding"'));
          const address = `127.0.0.1:${seeder.port}`;
          const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=film.bin&x.pe=${address}`;
          const job = { torrent, announced: torrent, size, seeder: address, magnet, scratch: scratch.path };
          const all = { SLUICE_CACHE_LIMIT: "0", SLUICE_LOG: "error", ...env };
          const cost = await sluiceDownload(job, runtime, all);
          const key = `${runtime}, ${name}`;
          costs.set(key, [...(costs.get(key) ?? []), cost]);
          console.error(`round ${round + 1}: ${key}: ${cost.cpuSeconds.toFixed(2)} CPU s`);
        } finally {
          await seeder.stop();
        }
      }
    }
  }
  const cpu = (key: string) => (median(costs.get(key)!.map((cost) => cost.cpuSeconds)) * GIB) / size;
  const rows = [...costs].map(([key, all]) => [
    key,
    cpu(key).toFixed(2),
    (cpu(key) - cpu(`${key.split(",")[0]}, TCP`)).toFixed(2),
    ((size * 8) / 1e6 / median(all.map((cost) => cost.seconds))).toFixed(0),
  ]);
  return markdownTable(["engine", "CPU s/GiB", "more than TCP", "Mbit/s"], rows);
}
