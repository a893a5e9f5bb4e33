import type { TcpHandlers, TcpSocket } from "../../runtime/contract.ts";
import type { PeerNet, SharedUdp } from "./contract.ts";
import type { MayTalkTo } from "./ip-filter.ts";

/** Peers called and let in only where they may be talked to. */
export function filteredNet(net: PeerNet, mayTalkTo: MayTalkTo): PeerNet {
  return {
    connect(address, handlers, options) {
      if (mayTalkTo(address.host)) return net.connect(address, handlers, options);
      queueMicrotask(() => handlers.closed("not talked to: in the list of addresses"));
      return deadSocket(address);
    },
    listen: (address, accept) =>
      net.listen(address, (socket) => {
        if (mayTalkTo(socket.remote.host)) return accept(socket);
        socket.close();
        return NO_HANDLERS;
      }),
  };
}

/** The same for datagrams. */
export function filteredUdp(udp: SharedUdp, mayTalkTo: MayTalkTo): SharedUdp {
  return {
    port: udp.port,
    send(bytes, to) {
      if (mayTalkTo(to.host)) udp.send(bytes, to);
    },
    listen: (protocol, received) =>
      udp.listen(protocol, (bytes, from) => {
        if (mayTalkTo(from.host)) received(bytes, from);
      }),
    close: () => udp.close(),
  };
}

const NO_HANDLERS: TcpHandlers = { received() {}, drained() {}, closed() {} };

function deadSocket(remote: TcpSocket["remote"]): TcpSocket {
  return { remote, bufferedBytes: 0, write: () => true, pause() {}, resume() {}, close() {} };
}
