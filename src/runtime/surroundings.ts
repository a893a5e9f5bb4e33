import { exec } from "node:child_process";
import { readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { parseNetwork } from "../base/network.ts";
import type { OwnNetwork, Surroundings } from "./contract.ts";
import { defaultGateway } from "./route-table.ts";

/** Commands print a port or an address. */
const MAX_OUTPUT_BYTES = 64 * 1024;
/** Reading the interfaces for every request would cost more than the rest of the request. */
const CACHE_MS = 5_000;

/** The networks that this machine is connected to, read through `node:*` modules. */
export const surroundings: Surroundings = {
  networks: () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
      (addresses ?? []).flatMap((address) => ownNetwork(name, address)),
    ),

  async gateway() {
    try {
      return defaultGateway(await readFile("/proc/net/route", "utf8")) ?? "none";
    } catch {
      return undefined; // Only Linux has that file.
    }
  },

  run: (commandLine, timeoutMs) =>
    new Promise((resolve, reject) => {
      const limits = { timeout: timeoutMs, maxBuffer: MAX_OUTPUT_BYTES, windowsHide: true };
      exec(commandLine, limits, (error, output) => (error ? reject(error) : resolve(output)));
    }),
};

/** Returns a function that reads this machine's networks and caches them for 5 s. `now` returns milliseconds. */
export function cachedNetworks(now: () => number = () => performance.now()): () => readonly OwnNetwork[] {
  let networks: readonly OwnNetwork[] = [];
  let readMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - readMs < CACHE_MS) return networks;
    readMs = now();
    networks = surroundings.networks();
    return networks;
  };
}

function ownNetwork(
  name: string,
  {
    cidr,
    family,
    internal,
    scopeid,
  }: { cidr: string | null; family: string; internal: boolean; scopeid?: number },
): OwnNetwork[] {
  const network = parseNetwork(cidr?.replace(/%[^/]*/, "") ?? "");
  if (network === undefined) return [];
  // Windows identifies interfaces by number, other systems by name.
  const zone = process.platform === "win32" ? String(scopeid) : name;
  const multicastAddress = family === "IPv6" ? `::%${zone}` : network.host;
  return [{ ...network, interfaceName: name, isLoopback: internal, multicastAddress }];
}
