// A webtorrent peer for tests: `seed|leech TORRENT FOLDER [PEER] [--exit]`; prints its events, one JSON line each.
import { readFileSync } from "node:fs";
import WebTorrent from "webtorrent";

const [role, torrentPath, folder, ...rest] = process.argv.slice(2);
const exit = rest.includes("--exit");
const peers = rest.filter((word) => !word.startsWith("--"));
const say = (fields) => console.log(JSON.stringify(fields));

const client = new WebTorrent({
  dht: false,
  tracker: false,
  lsd: false,
  natUpnp: false,
  natPmp: false,
  utp: false,
  utPex: false,
  secure: false,
});
client.on("error", (error) => {
  console.error(String(error));
  process.exit(1);
});
const began = performance.now();
const torrent = client.add(readFileSync(torrentPath), {
  path: folder,
  announce: [],
  skipVerify: role === "seed",
});
torrent.on("ready", () => {
  if (role === "leech") for (const file of torrent.files) file.select();
  for (const peer of peers) torrent.addPeer(peer);
});
torrent.on("done", () => {
  if (role !== "leech") return;
  const used = process.cpuUsage();
  say({
    event: "complete",
    seconds: (performance.now() - began) / 1000,
    cpuSeconds: (used.user + used.system) / 1e6,
    downloaded: torrent.downloaded,
  });
  if (exit) process.exit(0);
});
const listening = setInterval(() => {
  if (!client.torrentPort) return;
  clearInterval(listening);
  say({ event: "listening", port: client.torrentPort });
}, 20);
