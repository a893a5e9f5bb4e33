import { addressScope } from "../../base/address.ts";
import { SluiceError } from "../../base/errors.ts";
import { isInNetwork } from "../../base/network.ts";
import type { Net, OwnNetwork, TcpHandlers } from "../../runtime/contract.ts";
import { ProxiedUdp, type ProxiedUdpDependencies } from "./proxied-udp.ts";
import { openTunnel, type TunnelHandlers } from "./tunnel.ts";

export interface ProxiedNetDependencies extends ProxiedUdpDependencies {
  /** Returns the present networks of this machine. */
  readonly networks: () => readonly OwnNetwork[];
}

/**
 * Wraps `net` so that traffic goes through the proxy. Strict: traffic that the proxy cannot carry is refused, and only this
 * machine can connect. Otherwise local networks, multicast, incoming connections and unsupported UDP bypass the proxy.
 */
export function proxiedNet(dependencies: ProxiedNetDependencies): Net {
  const { proxyDependencies, net, placeholders, isStrict, warnOnce } = dependencies;
  const isLocal = (host: string) =>
    !isStrict && dependencies.networks().some((network) => isInNetwork(host, network));
  return {
    connect(address, handlers, options) {
      if (addressScope(address.host) === "loopback" || isLocal(address.host))
        return net.connect(address, handlers, options);
      const to = { host: placeholders.nameOf(address.host) ?? address.host, port: address.port };
      const request = { command: "connect", to } as const;
      return openTunnel(
        { ...proxyDependencies, net },
        request,
        address,
        tcpHandlersOnly(handlers),
        options.timeoutMs,
      );
    },
    listen(address, accept, admits) {
      const isOpen = !isStrict || addressScope(address.host) === "loopback";
      return net.listen(isOpen ? address : { host: "127.0.0.1", port: address.port }, accept, admits);
    },
    async bindUdp(address, received, options = {}) {
      const isDirect = addressScope(address.host) === "loopback" || (options.multicast && !isStrict);
      if (isDirect) return net.bindUdp(address, received, options);
      if (options.multicast) throw refused("a proxy cannot carry multicast");
      if (proxyDependencies.proxy.kind === "socks5")
        return new ProxiedUdp(dependencies, address, received, options);
      if (isStrict) throw refused("an HTTP proxy does not support UDP");
      warnOnce("an HTTP proxy does not support UDP, which is sent directly (see the setting proxy-strict)");
      return net.bindUdp(address, received, options);
    },
  };
}

/** Hides the arguments of the tunnel events from the caller. */
function tcpHandlersOnly(handlers: TcpHandlers): TunnelHandlers {
  return {
    opened: () => handlers.opened?.(),
    received: (bytes) => handlers.received(bytes),
    drained: () => handlers.drained(),
    closed: (reason) => handlers.closed(reason),
  };
}

function refused(problem: string): SluiceError {
  return new SluiceError("bad_configuration", `${problem}, and proxy-strict allows no other path`);
}
