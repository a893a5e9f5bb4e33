import { familyOf, type PeerAddress } from "../base/address.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isStun } from "../protocol/webrtc/stun.ts";
import type { Net, UdpSocket } from "../runtime/contract.ts";
import type { SharedUdp, UdpProtocol, UdpReceiver } from "./contract.ts";

/** uTP data of many peers arrives in bursts, and the system drops datagrams that do not fit into this buffer. */
const RECEIVE_BUFFER_BYTES = 1024 * 1024;

/** Binds the UDP port of the peer network. The wildcard address means IPv4 and IPv6. Rejects with `port_busy` if the port is in
 * use. */
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

/** Returns the protocol of a datagram by its first bytes; undefined if it is unknown. */
export function udpProtocol(bytes: Uint8Array): UdpProtocol | undefined {
  const first = bytes[0];
  if (first === undefined) return undefined;
  // A DHT message is a bencoded dictionary, which starts with `d` (BEP 5).
  if (first === 0x64) return "dht";
  // STUN has a magic cookie, DTLS a content type and the version 254 (RFC 7983).
  if (isStun(bytes) || (first >= 20 && first <= 63 && bytes[1] === 0xfe)) return "webrtc";
  // A uTP packet has version 1 in the low four bits, one of five types in the high four, and a complete header (BEP 29).
  if ((first & 0x0f) === 1 && first >> 4 <= 4 && bytes.length >= 20) return "utp";
  // A tracker request starts with a connection id (or the protocol id) and an action: 16 bytes (BEP 15).
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
    log.info("cannot bind UDP on IPv6; using IPv4 only", { reason: messageOf(error) });
    return net.bindUdp({ host: "0.0.0.0", port: address.port }, received, options);
  }
}
