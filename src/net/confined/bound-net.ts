import { addressScope, familyOf, type PeerAddress } from "../../base/address.ts";
import { SluiceError } from "../../base/errors.ts";
import type {
  ConnectOptions,
  DatagramReceiver,
  Net,
  TcpHandlers,
  TcpSocket,
  UdpOptions,
  UdpSocket,
} from "../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";
import { BoundListener } from "./bound-listener.ts";
import { BoundUdp } from "./bound-udp.ts";

/**
 * Wraps `net` so that traffic leaves only from the bound addresses. Connections from an address that is gone are closed
 * immediately, because IPv6 could continue through another interface. Loopback is always reachable.
 */
export function boundNet(net: Net, bound: BoundAddresses): Net {
  return {
    connect: (address, handlers, options) => connect(net, bound, address, handlers, options),
    listen(address, accept, admits) {
      const listen = (at: PeerAddress) => net.listen(at, accept, admits);
      if (addressScope(address.host) === "loopback") return listen(address);
      return BoundListener.open(listen, allowed(bound, address), address);
    },
    bindUdp(address, received, options = {}) {
      if (options.multicast) return joinGroup(net, bound, address, received, options);
      return addressScope(address.host) === "loopback"
        ? net.bindUdp(address, received, options)
        : BoundUdp.open(net, allowed(bound, address), address, received, options);
    },
  };
}

function connect(
  net: Net,
  bound: BoundAddresses,
  address: PeerAddress,
  handlers: TcpHandlers,
  options: ConnectOptions,
): TcpSocket {
  if (addressScope(address.host) === "loopback") return net.connect(address, handlers, options);
  const family = familyOf(address.host);
  const localAddress = bound.of(family);
  if (localAddress === undefined) return failedSocket(address, handlers, bound.problem(family));
  const otherInterface = bound.otherInterface(address.host);
  if (otherInterface !== undefined)
    return failedSocket(
      address,
      handlers,
      `${address.host} is reachable only through ${otherInterface}, which bind excludes`,
    );
  const stop = bound.watch(() => {
    if (!bound.has(localAddress)) socket.close();
  });
  const closed = (reason: string) => {
    stop();
    handlers.closed(reason);
  };
  const watched: TcpHandlers = {
    opened: () => handlers.opened?.(),
    received: (bytes) => handlers.received(bytes),
    drained: () => handlers.drained(),
    closed,
  };
  const socket = net.connect(address, watched, { ...options, localAddress });
  return socket;
}

/** Returns a socket that reports `reason` as closed. */
function failedSocket(remote: PeerAddress, handlers: TcpHandlers, reason: string): TcpSocket {
  queueMicrotask(() => handlers.closed(reason));
  const nothing = () => {};
  return { remote, bufferedBytes: 0, write: () => true, pause: nothing, resume: nothing, close: nothing };
}

/** Joins a multicast group on a bound network. Datagrams to other addresses are dropped. */
async function joinGroup(
  net: Net,
  bound: BoundAddresses,
  address: PeerAddress,
  received: DatagramReceiver,
  options: UdpOptions,
): Promise<UdpSocket> {
  const multicast = options.multicast!;
  const networkAddress = multicast.networkAddress ?? bound.of(familyOf(multicast.group));
  if (networkAddress === undefined || !bound.mayJoin(networkAddress))
    throw new SluiceError("bad_parameter", `the network ${networkAddress ?? ""} is excluded by bind`);
  const socket = await net.bindUdp(address, received, {
    ...options,
    multicast: { ...multicast, networkAddress },
  });
  return {
    address: socket.address,
    send(bytes, to) {
      if (addressScope(to.host) === "multicast" && bound.mayJoin(networkAddress)) socket.send(bytes, to);
    },
    close: () => socket.close(),
  };
}

/** Returns `bound` if `address` is a wildcard or a bound address; throws otherwise. */
function allowed(bound: BoundAddresses, { host }: PeerAddress): BoundAddresses {
  if (host === "" || addressScope(host) === "unspecified" || bound.has(host)) return bound;
  throw new SluiceError("bad_configuration", `${host} is not a bound address (see the setting bind)`);
}
