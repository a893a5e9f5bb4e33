// `npm run bench [-- --size MIB --rounds N --piece KIB --only downloads|latency|transports|scaling|remux|sound]`: measures Sluice beside
// libtorrent and webtorrent in one run, from one libtorrent seeder on loopback, and prints tables.
import { mkdir } from "node:fs/promises";
import { arch, cpus, release } from "node:os";
import { parseArgs } from "node:util";
import { startLoopbackTracker } from "../net/loopback-tracker.ts";
import type { RuntimeName } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { randomFile, tempFolder, torrentOf } from "../parts/torrent-files.ts";
import { benchDownloads } from "./download.ts";
import type { Job } from "./downloaders.ts";
import { benchLatency } from "./latency.ts";
import { benchRemux } from "./remux.ts";
import { benchScaling } from "./scaling.ts";
import { benchSound } from "./sound.ts";
import { benchTransports } from "./transports.ts";

const { values } = parseArgs({
  options: {
    size: { type: "string", default: "1024" },
    rounds: { type: "string", default: "3" },
    piece: { type: "string", multiple: true, default: ["1024", "256"] },
    only: { type: "string" },
    players: { type: "string", multiple: true, default: ["1", "10", "100", "1000"] },
    swarms: { type: "string", multiple: true, default: ["1", "10", "100"] },
    pieces: { type: "string", multiple: true, default: ["1000", "10000", "100000"] },
    files: { type: "string", multiple: true, default: ["1000", "10000", "100000"] },
    runtime: { type: "string", multiple: true, default: ["bun", "deno", "node"] },
  },
});
const size = Number(values.size) * 1024 * 1024;
const rounds = Number(values.rounds);
const runtimes = values.runtime as RuntimeName[];
const wants = (part: string) => values.only === undefined || values.only === part;

console.log(
  `${cpus().length} × ${cpus()[0]?.model}, Linux ${release()} ${arch()}, ${new Date().toISOString().slice(0, 10)}\n`,
);
const scratch = await tempFolder("bench");
try {
  await mkdir(scratch.file("seed"));
  const file = scratch.file("seed/film.bin");
  if (wants("downloads") || wants("latency")) await randomFile(file, size);
  for (const piece of values.piece) await benchPieces(file, Number(piece));
  if (wants("transports")) {
    console.log(`\n### TCP, RC4, uTP\n\n${await benchTransports(scratch, size, rounds, runtimes)}\n`);
  }
  if (wants("scaling")) {
    const numbers = (texts: readonly string[]) => texts.map(Number);
    const { players, swarms, pieces, files } = values;
    const sizes = {
      players: numbers(players),
      swarms: numbers(swarms),
      pieces: numbers(pieces),
      files: numbers(files),
    };
    console.log(`\n### Scaling\n\n${await benchScaling(sizes)}\n`);
  }
  if (wants("remux")) {
    console.log(`\n### MP4 to MPEG-TS\n\n${await benchRemux(scratch, size, rounds, runtimes)}\n`);
  }
  if (wants("sound")) console.log(`\n### Audio to AAC\n\n${await benchSound(scratch, rounds, runtimes)}\n`);
} finally {
  await scratch.remove();
}

async function benchPieces(file: string, kib: number): Promise<void> {
  if (!wants("downloads") && !wants("latency")) return;
  const torrent = await torrentOf(file, kib * 1024, scratch.file(`film-${kib}.torrent`));
  const tracker = await startLoopbackTracker();
  // The same content; downloaders that have only the transport file find the seeder through the tracker.
  const announced = await torrentOf(file, kib * 1024, scratch.file(`announced-${kib}.torrent`), [
    tracker.httpUrl,
  ]);
  const seeder = await startLibtorrent("seed", announced.path, scratch.file("seed"));
  try {
    const address = `127.0.0.1:${seeder.port}`;
    const magnet = `magnet:?xt=urn:btih:${torrent.infohash}&dn=film.bin&x.pe=${address}`;
    const job: Job = { torrent, announced, size, seeder: address, magnet, scratch: scratch.path };
    console.log(`\n### ${values.size} MiB, pieces of ${kib} KiB\n`);
    if (wants("downloads")) console.log(`${await benchDownloads(job, rounds, runtimes)}\n`);
    while (tracker.announces.length === 0) await new Promise((resolve) => setTimeout(resolve, 100));
    if (wants("latency")) console.log(`${await benchLatency(job, Math.max(rounds, 5))}\n`);
  } finally {
    await seeder.stop();
    await tracker.close();
  }
}
