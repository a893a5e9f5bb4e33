import { createServer } from "node:net";
import type { Log } from "../base/log.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { besideAnEngine } from "./beside.ts";

/** Below what systems give to outgoing connections (Linux: from 32768 on), so that a port is rarely taken by chance. */
const FIRST_PORT = 20_000;
const PORTS = 10_000;

/**
 * The settings of a broadcast or a relay beside an engine: its P2P port follows from `name`, so that it is the same at the
 * next start, whose peers then come back, and links and lists that name it stay true. Where another program has it, any
 * free one is taken, and said.
 */
export async function withSteadyPort(
  config: Config,
  name: string,
  runtime: Runtime,
  log: Log,
): Promise<Config> {
  const port = steadyPort(name, runtime.sha1);
  // Live streams are all they carry: the cache is left to an engine.
  const changed: Config = { ...besideAnEngine(config, port), cacheLimit: 0 };
  if (changed.p2pPort !== port || (await isFree(port))) return changed;
  log.warn(`another program listens on port ${port}; the address is another one this time (see --p2p-port)`);
  return { ...changed, p2pPort: 0 };
}

/** The port that belongs to a name. */
export function steadyPort(name: string, sha1: Runtime["sha1"]): number {
  const digest = sha1(encodeUtf8(name));
  return FIRST_PORT + (((digest[0]! << 16) | (digest[1]! << 8) | digest[2]!) % PORTS);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const server = createServer();
    server.once("error", () => done(false));
    server.listen({ port, exclusive: true }, () => server.close(() => done(true)));
  });
}
