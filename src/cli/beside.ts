import { type Config, settingsTable } from "../settings.ts";

/**
 * Two programs may run at once: a command that joins a swarm beside `serve` leaves the usual P2P port and the records,
 * which it does not need, to that. It takes `p2pPort` instead, 0 for any free one, unless the user has named another. What
 * it keeps of a live stream is in memory: hardly anybody goes back in it there, and a disk shall not write all day for that.
 */
export function besideAnEngine(config: Config, p2pPort = 0): Config {
  const usual = settingsTable({ dataDir: "" }).p2pPort.default;
  return {
    ...config,
    store: "memory",
    liveLimit: 0,
    p2pPort: config.p2pPort === usual ? p2pPort : config.p2pPort,
  };
}
