import { networkInterfaces } from "node:os";
import type { PeerAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { Config } from "../settings.ts";
import { ownAddresses } from "./own-addresses.ts";

/** The addresses of this machine on its networks, IPv4 first; those of one interface, or one address, alone where `bind`
 * names it. */
export function lanAddresses(bind = ""): string[] {
  const found = Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
    (addresses ?? []).filter(({ address }) => bind === "" || bind === name || bind === address),
  );
  return found
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .sort((a, b) => a.family.localeCompare(b.family))
    .map(({ address }) => address);
}

/** Where links and transport files say that this engine is: never at an address that peers shall not see. */
export function toldAddresses(config: Config, port: number): PeerAddress[] {
  const { bind, p2pHost } = config;
  if (isHidden(config)) return ownAddresses("127.0.0.1", port, []);
  return ownAddresses(p2pHost, port, lanAddresses(bind));
}

/** Looks up a name of which the address itself is needed. Rejects where this machine may not ask for it. */
export function ownLookup({ lookup }: Pick<Runtime, "lookup">, config: Config): Runtime["lookup"] {
  if (!isHidden(config)) return lookup;
  return async (name) => {
    const why = `${name} would have to be looked up outside of the proxy; give its address (see proxy-strict)`;
    throw new SluiceError("bad_parameter", why);
  };
}

/** Nothing but the proxy may see this machine. */
function isHidden({ proxy, proxyStrict }: Config): boolean {
  return proxy !== "" && proxyStrict === "on";
}
