import { networkInterfaces } from "node:os";
import { type Network, parseNetwork } from "../base/network.ts";

/** Cables are plugged and leases renewed now and then; asking the system for each request would cost more than the rest of it. */
const FRESH_MS = 5_000;

/** The addresses of this machine with the networks they are on, asked again every few seconds. */
export function machineNetworks(now: () => number = () => performance.now()): () => readonly Network[] {
  let networks: readonly Network[] = [];
  let askedMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - askedMs < FRESH_MS) return networks;
    askedMs = now();
    networks = Object.values(networkInterfaces()).flatMap((addresses) =>
      (addresses ?? []).flatMap(({ cidr }) => parseNetwork(cidr?.replace(/%[^/]*/, "") ?? "") ?? []),
    );
    return networks;
  };
}
