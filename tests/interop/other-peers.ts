import { chmod, mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";

const WEBTORRENT = fileURLToPath(new URL("./webtorrent/webtorrent-peer.mjs", import.meta.url));

/** One foreign BitTorrent program, as a seeder or as a leecher on loopback. */
export interface ForeignPeer {
  readonly name: string;
  /** Seeds `file` (an absolute path) of `torrent`; `port` is where it listens. */
  seed(torrent: string, file: string, scratch: string): Promise<{ process: RunningProcess; port: number }>;
  /** Downloads `torrent` into `folder`, from the tracker in the torrent or from `peer` where it can be told. */
  leech(torrent: string, folder: string, scratch: string, peer: string): Promise<RunningProcess>;
}

export const libtorrent: ForeignPeer = {
  name: "libtorrent",
  seed: async (torrent, file) => {
    const process = await startLibtorrent("seed", torrent, dirname(file));
    return { process, port: process.port };
  },
  leech: (torrent, folder, _scratch, peer) => startLibtorrent("leech", torrent, folder, { peers: [peer] }),
};

export const aria2: ForeignPeer = {
  name: "aria2",
  seed: async (torrent, file) => {
    const port = await freePort();
    const process = startProcess("aria2c", [
      ...ariaFlags(port, dirname(file)),
      "--seed-ratio=0",
      "-V",
      torrent,
    ]);
    await process.line((line) => /SEED|verification|Download complete/i.test(line));
    return { process, port };
  },
  leech: async (torrent, folder) =>
    startProcess("aria2c", [...ariaFlags(await freePort(), folder), "--seed-time=0", torrent]),
};

function ariaFlags(port: number, folder: string): string[] {
  return [
    `--listen-port=${port}`,
    `--dir=${folder}`,
    "--enable-dht=false",
    "--enable-dht6=false",
    "--bt-enable-lpd=false",
    "--bt-tracker-interval=2",
    "--summary-interval=1",
    "--no-conf",
  ];
}

export const transmission: ForeignPeer = {
  name: "transmission",
  seed: async (torrent, file, scratch) => {
    const port = await freePort();
    const process = await startTransmission(torrent, dirname(file), scratch, port);
    return { process, port };
  },
  leech: async (torrent, folder, scratch) => startTransmission(torrent, folder, scratch, await freePort()),
};

async function startTransmission(torrent: string, folder: string, scratch: string, port: number) {
  const settings = join(scratch, `transmission-${port}`);
  await mkdir(settings, { recursive: true });
  await writeFile(
    join(settings, "settings.json"),
    JSON.stringify({
      "dht-enabled": false,
      "lpd-enabled": false,
      "utp-enabled": false,
      "pex-enabled": true,
      "port-forwarding-enabled": false,
      "bind-address-ipv4": "127.0.0.1",
    }),
  );
  // The client prints its progress with carriage returns; it ends only when it is told to.
  return startProcess("transmission-cli", [
    "-g",
    settings,
    "-w",
    folder,
    "-p",
    String(port),
    "-M",
    "-er",
    torrent,
  ]);
}

export const webtorrent: ForeignPeer = {
  name: "webtorrent",
  seed: async (torrent, file) => {
    const process = startProcess("bun", [WEBTORRENT, "seed", torrent, dirname(file)]);
    const line = await process.line((text) => text.includes('"listening"'));
    return { process, port: (JSON.parse(line) as { port: number }).port };
  },
  leech: async (torrent, folder, _scratch, peer) =>
    startProcess("bun", [WEBTORRENT, "leech", torrent, folder, peer]),
};

/** A real tracker (opentracker) on loopback, over HTTP and UDP, that knows the given infohashes. */
export async function startTracker(scratch: string, infohashes: readonly string[]) {
  const port = await freePort();
  const list = join(scratch, `whitelist-${port}`);
  await writeFile(list, `${infohashes.join("\n")}\n`);
  // It gives up root's rights for those of `nobody` before it reads the list.
  await chmod(scratch, 0o755);
  const address = ["-i", "127.0.0.1", "-p", String(port), "-P", String(port)];
  const tracker = startProcess("opentracker", [...address, "-d", dirname(list), "-w", basename(list)]);
  return {
    process: tracker,
    httpUrl: `http://127.0.0.1:${port}/announce`,
    udpUrl: `udp://127.0.0.1:${port}/announce`,
  };
}
