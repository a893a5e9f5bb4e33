import { createSocket, type Socket } from "node:dgram";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { DatagramReceiver, UdpOptions, UdpSocket } from "./contract.ts";

/** Binds a UDP socket; rejects with `port_busy` where the port is taken, `bad_parameter` where a group cannot be joined
 * or the address is none of this machine's. */
export function bindUdp(
  address: PeerAddress,
  received: DatagramReceiver,
  { multicast, receiveBufferBytes }: UdpOptions = {},
): Promise<UdpSocket> {
  const type = address.host.includes(":") ? "udp6" : "udp4";
  const socket = createSocket({ type, ipv6Only: false, reuseAddr: multicast !== undefined });
  let isOpen = true;
  const close = () => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  return new Promise((resolve, reject) => {
    socket.once("error", (error: NodeJS.ErrnoException) => {
      close();
      const text = `UDP ${address.host} port ${address.port}`;
      if (error.code === "EADDRINUSE")
        reject(new SluiceError("port_busy", `another program listens on ${text}`, { cause: error }));
      else if (error.code === "EADDRNOTAVAIL" || error.code === "EACCES") {
        const why =
          error.code === "EACCES" ? "it is not allowed" : `this machine has no address ${address.host}`;
        reject(new SluiceError("bad_parameter", `cannot listen on ${text}: ${why}`, { cause: error }));
      } else reject(error);
    });
    socket.bind({ address: address.host, port: address.port }, () => {
      socket.removeAllListeners("error");
      try {
        if (multicast) join(socket, multicast);
      } catch (error) {
        close();
        const text = `the multicast group ${multicast?.group} cannot be joined here`;
        reject(new SluiceError("bad_parameter", text, { cause: error }));
        return;
      }
      if (receiveBufferBytes !== undefined) growBuffer(socket, receiveBufferBytes);
      // ICMP errors of earlier sends arrive here. A datagram may be lost at any time: callers have time-outs.
      socket.on("error", () => {});
      socket.on("message", (bytes, from) => {
        const host = canonicalAddress(from.address);
        if (isOpen && host !== undefined) received(bytes, { host, port: from.port });
      });
      const at = socket.address();
      resolve({
        address: { host: canonicalAddress(at.address) ?? at.address, port: at.port },
        send(bytes, to) {
          // The callback keeps a failed send (no route) from becoming an exception; it is like a lost datagram.
          if (isOpen) socket.send(bytes, to.port, mapped(to.host, type), () => {});
        },
        close,
      });
    });
  });
}

function join(socket: Socket, { group, networkAddress, hops }: NonNullable<UdpOptions["multicast"]>): void {
  socket.addMembership(group, networkAddress);
  if (hops === undefined) return;
  socket.setMulticastTTL(hops);
  // Other programs of this machine are neighbours, too.
  socket.setMulticastLoopback(true);
  if (networkAddress !== undefined) socket.setMulticastInterface(networkAddress);
}

/** Systems have limits of their own, and not all runtimes can ask: then it stays as it was. */
function growBuffer(socket: Socket, bytes: number): void {
  try {
    socket.setRecvBufferSize(bytes);
  } catch {}
}

/** A dual-stack socket reaches IPv4 addresses in their mapped form (RFC 4291 2.5.5.2). */
function mapped(host: string, type: "udp4" | "udp6"): string {
  return type === "udp6" && !host.includes(":") ? `::ffff:${host}` : host;
}
