/** Seeds each of the named files as a torrent of its own, on 127.0.0.1, and prints their magnet links. Usage: bun run-seeder.ts FILE… */
import { dirname } from "node:path";
import { startSeeder } from "./plain-seeder.ts";
import { torrentOf } from "./torrent-files.ts";

const films = process.argv.slice(2);
for (const film of films) {
  const torrent = await torrentOf(film, 64 * 1024, `${film}.torrent`);
  const { port } = await startSeeder(torrent, dirname(film));
  console.log(`magnet:?xt=urn:btih:${torrent.infohash}&x.pe=127.0.0.1:${port}`);
}
