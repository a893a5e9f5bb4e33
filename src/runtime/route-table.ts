/** `RTF_GATEWAY`: the route leads to a router. */
const GATEWAY_FLAG = 0x2;

/** Parses Linux's `/proc/net/route`. Returns the IPv4 gateway of the default route with the lowest metric, if any. */
export function defaultGateway(table: string): string | undefined {
  const routes = table.split("\n").flatMap((line) => {
    const [, destination, gateway, flags, , , metric] = line.trim().split(/\s+/);
    const isDefault = destination === "00000000" && /^[0-9A-F]{8}$/i.test(gateway ?? "");
    if (!isDefault || (Number.parseInt(flags ?? "0", 16) & GATEWAY_FLAG) === 0) return [];
    return [{ gateway: gateway!, metric: Number(metric) }];
  });
  const best = routes.sort((a, b) => a.metric - b.metric)[0];
  if (best === undefined) return undefined;
  // The table shows the number in memory order, which is little-endian on all supported machines.
  const bytes = best.gateway.match(/../g)!.map((hex) => Number.parseInt(hex, 16));
  return bytes.reverse().join(".");
}
