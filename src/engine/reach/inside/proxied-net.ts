import { addressScope } from "../../../base/address.ts";
import { SluiceError } from "../../../base/errors.ts";
import { isInNetwork } from "../../../base/network.ts";
import type { Net, OwnNetwork, TcpHandlers } from "../../../runtime/contract.ts";
import { ProxiedUdp, type ProxiedUdpParts } from "./proxied-udp.ts";
import { openTunnel, type TunnelHandlers } from "./tunnel.ts";

/** What sockets through a proxy are made of. */
export interface ProxiedNetParts extends ProxiedUdpParts {
  /** The networks of this machine, as they are now. */
  readonly networks: () => readonly OwnNetwork[];
}

/**
 * Sockets that go through the proxy. Strict: what it cannot carry is refused, and nobody but this machine can call us. Not
 * strict: neighbours, groups, calls from outside, and datagrams that it does not carry, go directly.
 */
export function proxiedNet(parts: ProxiedNetParts): Net {
  const { door, net, standIns, isStrict, warnOnce } = parts;
  const isNeighbour = (host: string) =>
    !isStrict && parts.networks().some((network) => isInNetwork(host, network));
  return {
    connect(address, handlers, options) {
      if (addressScope(address.host) === "loopback" || isNeighbour(address.host))
        return net.connect(address, handlers, options);
      const to = { host: standIns.nameOf(address.host) ?? address.host, port: address.port };
      const wish = { command: "connect", to } as const;
      return openTunnel({ ...door, net }, wish, address, told(handlers), options.timeoutMs);
    },
    listen(address, accept) {
      if (!isStrict || addressScope(address.host) === "loopback") return net.listen(address, accept);
      return net.listen({ host: "127.0.0.1", port: address.port }, accept);
    },
    async bindUdp(address, received, options = {}) {
      const isOurs = addressScope(address.host) === "loopback" || (options.multicast && !isStrict);
      if (isOurs) return net.bindUdp(address, received, options);
      if (options.multicast) throw refused("a group of neighbours cannot be reached through a proxy");
      if (door.proxy.kind === "socks5") return new ProxiedUdp(parts, address, received, options);
      if (isStrict) throw refused("an HTTP proxy carries no UDP");
      warnOnce("an HTTP proxy carries no UDP, which leaves directly (see the setting proxy-strict)");
      return net.bindUdp(address, received, options);
    },
  };
}

/** Who has a connection hears nothing of the proxy. */
function told(handlers: TcpHandlers): TunnelHandlers {
  return {
    opened: () => handlers.opened?.(),
    received: (bytes) => handlers.received(bytes),
    drained: () => handlers.drained(),
    closed: (reason) => handlers.closed(reason),
  };
}

function refused(why: string): SluiceError {
  return new SluiceError("bad_configuration", `${why}, and nothing goes around it (see proxy-strict)`);
}
