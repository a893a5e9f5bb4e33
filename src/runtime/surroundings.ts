import { exec } from "node:child_process";
import { readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { parseNetwork } from "../base/network.ts";
import type { OwnNetwork, Surroundings } from "./contract.ts";

/** A command prints a port or an address; what prints more is something else. */
const MAX_PRINTED_BYTES = 64 * 1024;
/** `RTF_GATEWAY` in Linux's table of routes: the route leads to a router. */
const LEADS_TO_ROUTER = 0x2;

/** What this machine is connected to, as `node:*` modules tell it. */
export const surroundings: Surroundings = {
  networks: () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
      (addresses ?? []).flatMap((address) => ownNetwork(name, address)),
    ),

  async gateway() {
    try {
      return gatewayOf(await readFile("/proc/net/route", "utf8")) ?? "none";
    } catch {
      // Only Linux has that file: nobody is at fault where it is not there.
      return undefined;
    }
  },

  run: (commandLine, timeoutMs) =>
    new Promise((resolve, reject) => {
      const limits = { timeout: timeoutMs, maxBuffer: MAX_PRINTED_BYTES, windowsHide: true };
      exec(commandLine, limits, (error, printed) => (error ? reject(error) : resolve(printed)));
    }),
};

/** The router of the default route with the least metric, out of Linux's `/proc/net/route`; undefined where there is none. */
export function gatewayOf(table: string): string | undefined {
  const routes = table.split("\n").flatMap((line) => {
    const [, destination, gateway, flags, , , metric] = line.trim().split(/\s+/);
    const isDefault = destination === "00000000" && /^[0-9A-F]{8}$/i.test(gateway ?? "");
    if (!isDefault || (Number.parseInt(flags ?? "0", 16) & LEADS_TO_ROUTER) === 0) return [];
    return [{ gateway: gateway!, metric: Number(metric) }];
  });
  const best = routes.sort((a, b) => a.metric - b.metric)[0];
  if (best === undefined) return undefined;
  // The number as the machine has it in memory, which is little-endian wherever we run.
  const bytes = best.gateway.match(/../g)!.map((hex) => Number.parseInt(hex, 16));
  return bytes.reverse().join(".");
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
  // Windows knows interfaces by their number, the others by their name.
  const zone = process.platform === "win32" ? String(scopeid) : name;
  const multicastAddress = family === "IPv6" ? `::%${zone}` : network.host;
  return [{ ...network, interfaceName: name, isLoopback: internal, multicastAddress }];
}
