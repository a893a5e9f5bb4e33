import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { engineCommand, freePort, runtimeCommand } from "./engine.ts";
import { type RunningProcess, startProcess } from "./process.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A broadcast of its own process, as a user would start it. */
export interface BroadcastProcess extends RunningProcess {
  readonly infohash: string;
  readonly contentId: string;
  /** Names only this source, by its address on this machine. */
  readonly magnet: string;
  readonly transportFile: string;
  readonly p2pPort: number;
  /** Its own HTTP interface. */
  readonly url: string;
  readonly dataDir: string;
}

/** The broadcast input: the test pattern, a stream whose packets carry their send time at a given byte rate, or a file or URL. */
export type BroadcastSource =
  | "test-pattern"
  | { readonly timedBytesPerSecond: number }
  | { readonly place: string };

export interface BroadcastOptions {
  readonly name?: string;
  readonly dataDir?: string;
  readonly p2pPort?: number;
  readonly flags?: readonly string[];
  /** Arguments before the command, such as `ip netns exec …`. */
  readonly prefix?: readonly string[];
  /** The address that peers connect to (default: 127.0.0.1). */
  readonly host?: string;
}

/** Starts a broadcast; resolves when it prints its infohash and links. */
export async function startBroadcast(
  source: BroadcastSource,
  options: BroadcastOptions = {},
): Promise<BroadcastProcess> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "sluice-broadcast-")));
  const p2pPort = options.p2pPort ?? (await freePort());
  const timed =
    typeof source === "object" && "timedBytesPerSecond" in source
      ? `${source.timedBytesPerSecond}`
      : undefined;
  const place = typeof source === "object" && "place" in source ? source.place : "--test-pattern";
  const words = [
    ...(options.prefix ?? []),
    ...engineCommand(),
    "broadcast",
    ...(timed === undefined ? [place] : ["-", "--bitrate", `${Number(timed) * 8}bit`]),
    ...["--name", options.name ?? "stream", "--json", "--p2p-port", String(p2pPort)],
    ...(options.flags ?? []),
  ];
  const quoted = words.map((word) => `'${word}'`).join(" ");
  // The input would fill the pipe while Node and Deno start, and the stream would stay two seconds behind it.
  const startSeconds = process.versions.bun ? 0 : 4;
  const timedInput = [...runtimeCommand(), "tests/parts/timed-stream.ts", timed].join(" ");
  const feed = `{ sleep ${startSeconds}; exec ${timedInput}; }`;
  // The shell waits for both processes; each ends when the other does.
  const script = timed === undefined ? `exec ${quoted}` : `${feed} | ${quoted} & wait`;
  const started = startProcess("setsid", ["sh", "-c", script], {
    cwd: ROOT,
    env: {
      PATH: `${join(ROOT, "node_modules", ".bin")}:${process.env.PATH}`,
      SLUICE_DATA_DIR: dataDir,
      SLUICE_LOG: "warn",
      XDG_CONFIG_HOME: dataDir,
    },
  });
  const facts = JSON.parse(await started.line((line) => line.startsWith("{"))) as {
    infohash: string;
    content_id: string;
    transport_file: string;
    http_url: string;
  };
  const end = (signal: NodeJS.Signals) => {
    try {
      process.kill(-started.pid, signal);
    } catch {
      // It has ended already.
    }
  };
  process.once("exit", () => end("SIGKILL"));
  return {
    ...started,
    infohash: facts.infohash,
    contentId: facts.content_id,
    magnet: `magnet:?xt=urn:btih:${facts.infohash}&x.pe=${options.host ?? "127.0.0.1"}:${p2pPort}`,
    transportFile: facts.transport_file,
    p2pPort,
    url: facts.http_url,
    dataDir,
    stop: async () => {
      end("SIGTERM");
      const code = await started.stop();
      end("SIGKILL");
      if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
      return code;
    },
  };
}

/** The URL of an engine at which a player finds this stream as MPEG-TS, or as HLS. */
export function watchUrl(engine: { readonly url: string }, magnet: string, output = "getstream"): string {
  return `${engine.url}/ace/${output}?magnet=${encodeURIComponent(magnet)}`;
}
