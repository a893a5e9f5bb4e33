import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../parts/engine.ts";
import { startLibtorrent } from "../parts/libtorrent.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";
import type { Need } from "../parts/test-tiers.ts";

const WEBTORRENT = fileURLToPath(new URL("./webtorrent/webtorrent-peer.mjs", import.meta.url));

/** One foreign BitTorrent program, as a seeder or as a leecher on loopback. */
export interface ForeignPeer {
  readonly name: string;
  readonly needs: readonly Need[];
  /** True if the program announces to a tracker. Otherwise the test passes its address on. */
  readonly announcesSeed: boolean;
  /** Seeds `file` (an absolute path) of `torrent`; `port` is where it listens. */
  seed(torrent: string, file: string, scratch: string): Promise<{ process: RunningProcess; port: number }>;
  /** Downloads `torrent` into `folder`, from the tracker in the torrent, or from `peer` if the program accepts one. `port` is
   * its listening port, if known. */
  leech(
    torrent: string,
    folder: string,
    scratch: string,
    peer: string,
  ): Promise<{ process: RunningProcess; port?: number }>;
}

export const libtorrent = libtorrentWith([]);

/** libtorrent with flags of `libtorrent_peer.py`. */
export function libtorrentWith(flags: readonly string[]): ForeignPeer {
  return {
    name: ["libtorrent", ...flags].join(" "),
    needs: ["libtorrent", "opentracker"],
    announcesSeed: true,
    seed: async (torrent, file) => {
      const process = await startLibtorrent("seed", torrent, dirname(file), { flags });
      return { process, port: process.port };
    },
    leech: async (torrent, folder, _scratch, peer) => {
      const process = await startLibtorrent("leech", torrent, folder, { peers: [peer], flags });
      return { process, port: process.port };
    },
  };
}

export const aria2: ForeignPeer = {
  name: "aria2",
  needs: ["aria2", "libtorrent", "opentracker"],
  announcesSeed: true,
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
  leech: async (torrent, folder) => {
    const port = await freePort();
    return { process: startProcess("aria2c", [...ariaFlags(port, folder), "--seed-time=0", torrent]), port };
  },
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

export const transmission = transmissionWith("-et");

/** Transmission with one of its flags on encryption: required, preferred or tolerated. */
export function transmissionWith(encryption: "-er" | "-ep" | "-et"): ForeignPeer {
  return {
    name: encryption === "-et" ? "transmission" : `transmission ${encryption}`,
    needs: ["transmission", "libtorrent", "opentracker"],
    announcesSeed: true,
    seed: async (torrent, file, scratch) => {
      const port = await freePort();
      const process = await startTransmission(torrent, dirname(file), scratch, { port, encryption });
      return { process, port };
    },
    // It ignores loopback peers from a tracker but accepts their connections: the other side must know its port.
    leech: async (torrent, folder, scratch) => {
      const port = await freePort();
      const process = await startTransmission(torrent, folder, scratch, { port, encryption });
      // Transmission retries a refused connection only after a delay.
      await untilListening(port);
      return { process, port };
    },
  };
}

async function startTransmission(
  torrent: string,
  folder: string,
  scratch: string,
  { port, encryption }: { port: number; encryption: string },
) {
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
  // The client prints its progress with carriage returns; it runs until it is stopped.
  return startProcess("transmission-cli", [
    "-g",
    settings,
    "-w",
    folder,
    "-p",
    String(port),
    "-M",
    encryption,
    torrent,
  ]);
}

export const webtorrent: ForeignPeer = {
  name: "webtorrent",
  needs: ["webtorrent", "libtorrent", "opentracker"],
  announcesSeed: false,
  seed: async (torrent, file) => {
    const process = startProcess("bun", [WEBTORRENT, "seed", torrent, dirname(file)]);
    const line = await process.line((text) => text.includes('"listening"'));
    return { process, port: (JSON.parse(line) as { port: number }).port };
  },
  leech: async (torrent, folder, _scratch, peer) => ({
    process: startProcess("bun", [WEBTORRENT, "leech", torrent, folder, peer]),
  }),
};

/** Resolves when a program listens on a port of loopback; rejects if none does within 20 s. */
async function untilListening(port: number): Promise<void> {
  // Reads the kernel's table: a silent test connection would use up Transmission's only slot for this address.
  const entry = new RegExp(
    `^ *\\d+: 0100007F:${port.toString(16).toUpperCase().padStart(4, "0")} \\S+ 0A `,
    "m",
  );
  for (let tries = 0; tries < 200; tries++) {
    if (entry.test(await readFile("/proc/net/tcp", "utf8"))) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** A real tracker (opentracker) on loopback, over HTTP and UDP, that knows the given infohashes. */
export async function startTracker(scratch: string, infohashes: readonly string[]) {
  const port = await freePort();
  const list = join(scratch, `whitelist-${port}`);
  await writeFile(list, `${infohashes.join("\n")}\n`);
  // The tracker drops root privileges before it reads the list, so the folder must be readable for all users.
  await chmod(scratch, 0o755);
  const address = ["-i", "127.0.0.1", "-p", String(port), "-P", String(port)];
  const tracker = startProcess("opentracker", [...address, "-d", dirname(list), "-w", basename(list)]);
  return {
    process: tracker,
    httpUrl: `http://127.0.0.1:${port}/announce`,
    udpUrl: `udp://127.0.0.1:${port}/announce`,
    /** Resolves when a peer with the whole file has announced itself. */
    async hasSeed(infohash: string): Promise<void> {
      const query = infohash.replace(/../g, "%$&");
      for (let tries = 0; tries < 300; tries++) {
        const answer = await fetch(`http://127.0.0.1:${port}/scrape?info_hash=${query}`).then((reply) =>
          reply.text(),
        );
        if (/8:completei[1-9]/.test(answer)) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(`no seed announced itself; the tracker said:\n${tracker.output()}`);
    },
  };
}
