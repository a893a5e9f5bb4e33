import process from "node:process";
import { canonicalAddress, type PeerAddress } from "../base/address.ts";
import type { DatagramReceiver, UdpOptions, UdpSocket } from "./contract.ts";
import { listenError } from "./listen-error.ts";
import { bindUdp, mapped, SenderAddress } from "./udp.ts";

/** An address as Deno describes it. */
interface DenoAddress {
  readonly transport: "udp";
  readonly hostname: string;
  readonly port: number;
}

/** The part of `Deno.listenDatagram` that is used here. */
interface DenoSocket {
  readonly addr: DenoAddress;
  receive(buffer: Uint8Array): Promise<[Uint8Array, DenoAddress]>;
  send(bytes: Uint8Array, to: DenoAddress): Promise<number>;
  close(): void;
}

type ListenDatagram = (options: DenoAddress) => DenoSocket;

/** The longest datagram of IPv4 and IPv6. */
const MAX_DATAGRAM_BYTES = 65_535;
const ERROR_PAUSE_MS = 10;

/**
 * Binds a UDP socket on Deno, whose `node:dgram` takes 190 µs to receive a datagram. Its own interface takes 4 µs; it is
 * unstable (`unstable` in deno.json enables it), so `node:dgram` is used if it is missing, for multicast,
 * and on Windows, where a socket of Deno's interface does not accept both IPv4 and IPv6.
 */
export async function bindDenoUdp(
  address: PeerAddress,
  received: DatagramReceiver,
  options: UdpOptions = {},
): Promise<UdpSocket> {
  const { listenDatagram } = (globalThis as { Deno?: { listenDatagram?: ListenDatagram } }).Deno ?? {};
  if (!listenDatagram || options.multicast || process.platform === "win32")
    return bindUdp(address, received, options);
  let socket: DenoSocket;
  try {
    socket = listenDatagram({ transport: "udp", hostname: address.host, port: address.port });
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, "UDP", address);
  }
  let isOpen = true;
  void receiveAll(socket, received, () => isOpen);
  const isIpv6 = address.host.includes(":");
  const host = canonicalAddress(socket.addr.hostname) ?? address.host;
  return {
    address: { host, port: socket.addr.port },
    send(bytes, to) {
      if (!isOpen) return;
      // A failed send (no route) counts as a lost datagram.
      socket
        .send(bytes, { transport: "udp", hostname: mapped(to.host, isIpv6), port: to.port })
        .catch(() => {});
    },
    close() {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
}

async function receiveAll(socket: DenoSocket, received: DatagramReceiver, isOpen: () => boolean) {
  const buffer = new Uint8Array(MAX_DATAGRAM_BYTES);
  const sender = new SenderAddress();
  while (isOpen()) {
    try {
      const [bytes, { hostname, port }] = await socket.receive(buffer);
      const from = sender.of(hostname, port);
      if (from && isOpen()) received(bytes, from);
    } catch {
      // ICMP errors of earlier sends arrive here, and the end of a closed socket. Should an error persist, it takes no CPU.
      if (isOpen()) await new Promise((resolve) => setTimeout(resolve, ERROR_PAUSE_MS));
    }
  }
}
