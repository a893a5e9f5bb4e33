import { createServer } from "node:net";
import type { Log } from "../base/log.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { Runtime } from "../runtime/contract.ts";
import { type Config, settingsTable } from "../settings/settings.ts";

/** Below the range of ports for outgoing connections (Linux: 32768 and up), so that the port is rarely in use. */
const FIRST_PORT = 20_000;
const PORTS = 10_000;

/**
 * Returns the settings of a command that runs while `serve` may be running: it does not open the database, keeps live
 * streams in memory, and uses `p2pPort` (0 for a free port) unless the user has set a port.
 */
export function besideEngine(config: Config, p2pPort = 0): Config {
  const usual = settingsTable({ dataDir: "" }).p2pPort.default;
  return {
    ...config,
    store: "memory",
    liveLimit: 0,
    p2pPort: config.p2pPort === usual ? p2pPort : config.p2pPort,
  };
}

/**
 * Returns the settings of a broadcast or a relay. Its peer port derives from `name`, so that links and known peers stay valid
 * after a restart. If another program uses that port, the system chooses one and a warning is logged.
 */
export async function withSteadyPort(
  config: Config,
  name: string,
  runtime: Runtime,
  log: Log,
): Promise<Config> {
  const port = steadyPort(name, runtime.sha1);
  // Broadcasts and relays carry only live streams, which do not use the disk cache.
  const changed: Config = { ...besideEngine(config, port), cacheLimit: 0 };
  if (changed.p2pPort !== port || (await isFree(port))) return changed;
  log.warn(`port ${port} is in use; another port is used until the next start (see --p2p-port)`);
  return { ...changed, p2pPort: 0 };
}

/** Returns the port that belongs to a name. */
function steadyPort(name: string, sha1: Runtime["sha1"]): number {
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
