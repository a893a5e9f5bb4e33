import { familyOf, type PeerAddress } from "../../base/address.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Net, UdpSocket } from "../../runtime/contract.ts";
import type { SharedUdp, UdpProtocol, UdpReceiver } from "./contract.ts";

/** uTP data of many peers comes in bursts, and what does not fit is lost. */
const RECEIVE_BUFFER_BYTES = 1024 * 1024;

/**
 * Binds the UDP port of the peer network. The wildcard address stands for IPv4 and IPv6. Rejects with `port_busy` where the
 * port is taken.
 */
export async function bindSharedUdp(
  net: Pick<Net, "bindUdp">,
  log: Log,
  address: PeerAddress,
): Promise<SharedUdp> {
  const receivers = new Map<UdpProtocol, UdpReceiver>();
  const received = (bytes: Uint8Array, from: PeerAddress) => {
    const protocol = udpProtocol(bytes);
    if (protocol) receivers.get(protocol)?.(bytes, from);
  };
  const socket = await bind(net, log, address, received);
  const isIpv4Only = familyOf(socket.address.host) === 4;
  return {
    port: socket.address.port,
    send(bytes, to) {
      if (isIpv4Only && familyOf(to.host) === 6) return;
      socket.send(bytes, to);
    },
    listen: (protocol, receiver) => void receivers.set(protocol, receiver),
    close: () => socket.close(),
  };
}

/** Whose datagram this is by its first bytes; undefined where it is none of those we speak. */
export function udpProtocol(bytes: Uint8Array): UdpProtocol | undefined {
  const first = bytes[0];
  if (first === undefined) return undefined;
  // A bencoded dictionary: `d` (BEP 5).
  if (first === 0x64) return "dht";
  // Version 1 in the low half, one of five types in the high one, and a whole header (BEP 29).
  if ((first & 0x0f) === 1 && first >> 4 <= 4 && bytes.length >= 20) return "utp";
  // A question to a tracker has a connection id, or the number that stands for none, and its action: 16 bytes (BEP 15).
  return bytes.length >= 16 ? "tracker" : undefined;
}

async function bind(
  net: Pick<Net, "bindUdp">,
  log: Log,
  address: PeerAddress,
  received: UdpReceiver,
): Promise<UdpSocket> {
  const options = { receiveBufferBytes: RECEIVE_BUFFER_BYTES };
  const isWildcard = address.host === "" || address.host === "::";
  if (!isWildcard) return net.bindUdp(address, received, options);
  try {
    return await net.bindUdp({ host: "::", port: address.port }, received, options);
  } catch (error) {
    if (error instanceof SluiceError && error.code === "port_busy") throw error;
    log.info("no IPv6 here, UDP is IPv4 alone", { reason: messageOf(error) });
    return net.bindUdp({ host: "0.0.0.0", port: address.port }, received, options);
  }
}
