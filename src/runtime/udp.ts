import { createSocket, type Socket } from "node:dgram";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import { SluiceError } from "../base/errors.ts";
import type { DatagramReceiver, UdpOptions, UdpSocket } from "./contract.ts";
import { listenError } from "./listen-error.ts";

/** Binds a UDP socket. Rejects with `port_busy` if the port is in use, `bad_parameter` if the multicast group cannot be
 * joined or the address does not belong to this machine. */
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
      reject(listenError(error, "UDP", address));
    });
    socket.bind({ address: address.host, port: address.port }, () => {
      socket.removeAllListeners("error");
      try {
        if (multicast) join(socket, multicast);
      } catch (error) {
        close();
        const text = `cannot join the multicast group ${multicast?.group}`;
        reject(new SluiceError("bad_parameter", text, { cause: error }));
        return;
      }
      if (receiveBufferBytes !== undefined) growBuffer(socket, receiveBufferBytes);
      // ICMP errors of earlier sends arrive here. Callers handle lost datagrams by timeouts.
      socket.on("error", () => {});
      const sender = new SenderAddress();
      socket.on("message", (bytes, { address: host, port }) => {
        const from = sender.of(host, port);
        if (isOpen && from) received(bytes, from);
      });
      const at = socket.address();
      resolve({
        address: { host: canonicalAddress(at.address) ?? at.address, port: at.port },
        send(bytes, to) {
          // With a callback a failed send (no route) does not throw; it counts as a lost datagram.
          if (isOpen) socket.send(bytes, to.port, mapped(to.host, type === "udp6"), () => {});
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
  // Other programs on this machine receive the datagrams too.
  socket.setMulticastLoopback(true);
  if (networkAddress !== undefined) socket.setMulticastInterface(networkAddress);
}

/** Requests a larger receive buffer. The system may limit it, and some runtimes cannot change it. */
function growBuffer(socket: Socket, bytes: number): void {
  try {
    socket.setRecvBufferSize(bytes);
  } catch {}
}

/** A dual-stack socket needs IPv4 addresses in mapped form (RFC 4291 2.5.5.2). */
export function mapped(host: string, isIpv6Socket: boolean): string {
  return isIpv6Socket && !host.includes(":") ? `::ffff:${host}` : host;
}

/** Converts the senders of datagrams to canonical addresses. A fast peer sends many in a row, so the last one is kept. */
export class SenderAddress {
  #host = "";
  #address: PeerAddress | undefined;

  /** Returns undefined if `host` is not an IP literal. */
  of(host: string, port: number): PeerAddress | undefined {
    if (host !== this.#host) {
      this.#host = host;
      const canonical = canonicalAddress(host);
      this.#address = canonical === undefined ? undefined : { host: canonical, port };
    } else if (this.#address && this.#address.port !== port) this.#address = { ...this.#address, port };
    return this.#address;
  }
}
