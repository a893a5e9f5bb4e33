import { mkdir } from "node:fs/promises";
import { createConnection } from "node:net";
import { freePort } from "../parts/engine.ts";
import { type RunningProcess, startProcess } from "../parts/process.ts";

/** A Redis server of a test. */
export interface RedisServer extends RunningProcess {
  readonly port: number;
  readonly url: string;
}

/** Starts a server that keeps its records in `folder`, synced before each answer. `options` are those of redis.conf. */
export async function startRedis(
  folder: string,
  options: Readonly<Record<string, string>> = {},
  wantedPort?: number,
): Promise<RedisServer> {
  await mkdir(folder, { recursive: true });
  const port = wantedPort ?? (await freePort());
  const all = {
    ...{ port: String(port), bind: "127.0.0.1", dir: folder, save: "", appendonly: "yes" },
    ...{ appendfsync: "always", "auto-aof-rewrite-percentage": "0", ...options },
  };
  const args = Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
  const running = startProcess("redis-server", args);
  for (let tries = 0; !(await accepts(port)); tries++) {
    if (tries > 400 || running.child.exitCode !== null) throw new Error(`redis-server: ${running.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return { ...running, port, url: `redis://127.0.0.1:${port}` };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    socket.on("error", () => resolve(false));
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}
