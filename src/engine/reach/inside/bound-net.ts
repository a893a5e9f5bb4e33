import { addressScope, familyOf, type PeerAddress } from "../../../base/address.ts";
import { SluiceError } from "../../../base/errors.ts";
import type {
  ConnectOptions,
  DatagramReceiver,
  Net,
  TcpHandlers,
  TcpSocket,
  UdpOptions,
  UdpSocket,
} from "../../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";
import { BoundListener } from "./bound-listener.ts";
import { BoundUdp } from "./bound-udp.ts";

/**
 * Sockets that leave from the bound addresses alone. What leaves from an address that has gone is closed at once: IPv6 would
 * go on by another way. Loopback is this machine, and always reached.
 */
export function boundNet(net: Net, bound: BoundAddresses): Net {
  return {
    connect: (address, handlers, options) => connect(net, bound, address, handlers, options),
    listen: (address, accept) =>
      addressScope(address.host) === "loopback"
        ? net.listen(address, accept)
        : BoundListener.open(net, allowed(bound, address), address, accept),
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
  if (localAddress === undefined) return noSocket(address, handlers, bound.problem(family));
  const elsewhere = bound.elsewhere(address.host);
  if (elsewhere !== undefined)
    return noSocket(address, handlers, `${address.host} is at ${elsewhere}, where nothing leaves`);
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

/** A connection that never was. */
function noSocket(remote: PeerAddress, handlers: TcpHandlers, reason: string): TcpSocket {
  queueMicrotask(() => handlers.closed(reason));
  const nothing = () => {};
  return { remote, bufferedBytes: 0, write: () => true, pause: nothing, resume: nothing, close: nothing };
}

/** A group of neighbours, on a bound network alone. Nothing but the group is sent to. */
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
    throw new SluiceError("bad_parameter", `the network ${networkAddress ?? ""} is not the one of bind`);
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

/** The bound addresses, where `address` is everywhere or one of them. */
function allowed(bound: BoundAddresses, { host }: PeerAddress): BoundAddresses {
  if (host === "" || addressScope(host) === "unspecified" || bound.has(host)) return bound;
  throw new SluiceError("bad_configuration", `${host} is not where traffic may leave (see the setting bind)`);
}
