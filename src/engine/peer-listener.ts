import { addressText, type PeerAddress } from "../base/address.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { after } from "../base/time.ts";
import type { Clock, TcpHandlers, TcpListener, TcpSocket } from "../runtime/contract.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../swarm/limits.ts";
import { decodeHandshake, HANDSHAKE_BYTES, mayBeHandshake } from "../wire/handshake.ts";
import type { PeerNet } from "./reach/contract.ts";

/** Connections that have not said yet what they want. With more the oldest is closed: a peer says it at once, and those
 * who keep silent shall keep nobody out. */
const MAX_PENDING = 50;

/** Takes over a connection for its transfer, with the bytes read so far; undefined where we have no such content. */
export type Adopt = (infohash: Infohash, socket: TcpSocket, first: Uint8Array) => TcpHandlers | undefined;

/** What a listener is made of. */
export interface PeerListenerParts {
  readonly net: Pick<PeerNet, "listen">;
  readonly clock: Clock;
  readonly log: Log;
  readonly adopt: Adopt;
}

/**
 * Listens for peers of all transfers: reads the handshake (BEP 3), finds the transfer by its infohash, and hands the
 * connection over. The wildcard address stands for IPv4 and IPv6.
 */
export async function listenForPeers(parts: PeerListenerParts, address: PeerAddress): Promise<TcpListener> {
  const pending = new Set<TcpSocket>();
  const accept = (socket: TcpSocket) => greet(parts, socket, pending);
  const isWildcard = address.host === "" || address.host === "::";
  if (!isWildcard) return parts.net.listen(address, accept);
  try {
    return await parts.net.listen({ host: "::", port: address.port }, accept);
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    parts.log.info("no IPv6 here, listening on IPv4 alone", { reason: messageOf(error) });
    return parts.net.listen({ host: "0.0.0.0", port: address.port }, accept);
  }
}

function greet(parts: PeerListenerParts, socket: TcpSocket, pending: Set<TcpSocket>): TcpHandlers {
  const { clock } = parts;
  const greeting = new Uint8Array(HANDSHAKE_BYTES);
  let got = 0;
  let target: TcpHandlers | undefined;
  const settle = () => {
    pending.delete(socket);
    cancel();
  };
  const cancel = clock.at(after(clock.now(), HANDSHAKE_TIMEOUT_MS), () => socket.close());
  const [oldest] = pending;
  if (oldest && pending.size >= MAX_PENDING) {
    pending.delete(oldest);
    oldest.close();
  }
  pending.add(socket);
  return {
    received(bytes) {
      if (target) {
        target.received(bytes);
        return;
      }
      const part = bytes.subarray(0, HANDSHAKE_BYTES - got);
      greeting.set(part, got);
      got += part.length;
      if (!pending.has(socket)) return;
      if (!mayBeHandshake(greeting.subarray(0, got))) {
        socket.close();
        return;
      }
      if (got < HANDSHAKE_BYTES) return;
      settle();
      target = handOver(parts, socket, greeting);
      if (target === undefined) socket.close();
      else if (part.length < bytes.length) target.received(bytes.subarray(part.length));
    },
    drained: () => target?.drained(),
    closed(reason) {
      settle();
      target?.closed(reason);
    },
  };
}

function handOver(
  parts: PeerListenerParts,
  socket: TcpSocket,
  greeting: Uint8Array,
): TcpHandlers | undefined {
  try {
    const { infohash } = decodeHandshake(greeting);
    return parts.adopt(infohash, socket, greeting);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    parts.log.debug("not a peer", { from: addressText(socket.remote), reason: error.message });
    return undefined;
  }
}
