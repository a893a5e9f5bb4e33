import { addressText, type PeerAddress } from "../base/address.ts";
import { DecodeError, messageOf, SluiceError } from "../base/errors.ts";
import type { Infohash } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { householdOf } from "../base/network.ts";
import { after } from "../base/time.ts";
import { HANDSHAKE_TIMEOUT_MS } from "../protocol/swarm/limits.ts";
import type { Clock, TcpHandlers, TcpListener, TcpSocket } from "../runtime/contract.ts";
import { decodeHandshake, HANDSHAKE_BYTES, isHandshakePrefix } from "../wire/peer/handshake.ts";
import type { PeerNet } from "./contract.ts";

/** Connections without a complete handshake. Above the limit the oldest of the household with the most is closed, so that silent
 * connections cannot block others, and a flood displaces only its own. */
const MAX_PENDING = 50;

/** Passes a connection and the bytes read so far to its transfer; returns undefined if the content is not open. */
export type Adopt = (infohash: Infohash, socket: TcpSocket, first: Uint8Array) => TcpHandlers | undefined;

export interface PeerListenerDependencies extends HandshakeDependencies {
  readonly net: Pick<PeerNet, "listen">;
}

interface HandshakeDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly adopt: Adopt;
}

/**
 * Listens for peers of all transfers: reads the handshake (BEP 3) and passes the connection to the transfer of its infohash.
 * The wildcard address means IPv4 and IPv6.
 */
export async function listenForPeers(
  dependencies: PeerListenerDependencies,
  address: PeerAddress,
): Promise<TcpListener> {
  const accept = acceptPeers(dependencies);
  const isWildcard = address.host === "" || address.host === "::";
  if (!isWildcard) return dependencies.net.listen(address, accept);
  try {
    return await dependencies.net.listen({ host: "::", port: address.port }, accept);
  } catch (error) {
    if (error instanceof SluiceError && error.code === "port_busy") throw error;
    dependencies.log.info("cannot listen on IPv6; listening on IPv4 only", { reason: messageOf(error) });
    return dependencies.net.listen({ host: "0.0.0.0", port: address.port }, accept);
  }
}

/**
 * Returns a function that reads the handshake of an incoming connection and passes the connection on. The limit of connections
 * without a handshake applies to all connections of that function together.
 */
export function acceptPeers(
  dependencies: HandshakeDependencies,
): (socket: TcpSocket, adopt?: Adopt) => TcpHandlers {
  const pending = new Map<TcpSocket, string>();
  return (socket, adopt = dependencies.adopt) => readHandshake({ ...dependencies, adopt }, socket, pending);
}

function readHandshake(
  dependencies: HandshakeDependencies,
  socket: TcpSocket,
  pending: Map<TcpSocket, string>,
): TcpHandlers {
  const { clock } = dependencies;
  const handshake = new Uint8Array(HANDSHAKE_BYTES);
  let filled = 0;
  let target: TcpHandlers | undefined;
  const settle = () => {
    pending.delete(socket);
    cancel();
  };
  const cancel = clock.at(after(clock.now(), HANDSHAKE_TIMEOUT_MS), () => socket.close());
  if (pending.size >= MAX_PENDING) {
    const excess = oldestOfMost(pending);
    pending.delete(excess);
    excess.close();
  }
  pending.set(socket, householdOf(socket.remote.host));
  return {
    received(bytes) {
      if (target) {
        target.received(bytes);
        return;
      }
      const part = bytes.subarray(0, HANDSHAKE_BYTES - filled);
      handshake.set(part, filled);
      filled += part.length;
      if (!pending.has(socket)) return;
      if (!isHandshakePrefix(handshake.subarray(0, filled))) {
        socket.close();
        return;
      }
      if (filled < HANDSHAKE_BYTES) return;
      settle();
      target = handOver(dependencies, socket, handshake);
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

/** Returns the oldest connection of the household with the most. */
function oldestOfMost(pending: ReadonlyMap<TcpSocket, string>): TcpSocket {
  const households = new Map<string, TcpSocket[]>();
  for (const [socket, household] of pending)
    households.set(household, [...(households.get(household) ?? []), socket]);
  return [...households.values()].reduce((most, each) => (each.length > most.length ? each : most))[0]!;
}

function handOver(
  dependencies: HandshakeDependencies,
  socket: TcpSocket,
  handshake: Uint8Array,
): TcpHandlers | undefined {
  try {
    const { infohash } = decodeHandshake(handshake);
    return dependencies.adopt(infohash, socket, handshake);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    dependencies.log.debug("malformed handshake", {
      from: addressText(socket.remote),
      reason: error.message,
    });
    return undefined;
  }
}
