import { addressScope, canonicalAddress, familyOf, type PeerAddress } from "../../base/address.ts";
import { DecodeError, messageOf } from "../../base/errors.ts";
import { after } from "../../base/time.ts";
import type { Net, TcpSocket, UdpOptions, UdpSocket } from "../../runtime/contract.ts";
import { decodeSocksDatagram, encodeSocksDatagram, type SocksAddress } from "../../wire/socks5.ts";
import type { ProxyRefusal } from "./proxy-handshake.ts";
import { openTunnel, type ProxyDependencies } from "./tunnel.ts";

/** Datagrams queued until the association exists; above the limit the oldest are dropped. */
const MAX_QUEUED = 32;
const ASSOCIATE_MS = 15_000;
/** Backoff after an association that ended or failed; it doubles each time. */
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 60_000;
const ANYWHERE: SocksAddress = { host: "0.0.0.0", port: 0 };

export interface AssociationDependencies extends ProxyDependencies {
  readonly net: Pick<Net, "connect" | "bindUdp">;
  readonly options: UdpOptions;
  readonly received: (payload: Uint8Array, from: PeerAddress) => void;
  /** Called if the proxy does not support UDP. */
  readonly unsupported: (refusal: ProxyRefusal) => void;
}

/**
 * A UDP association through a SOCKS5 proxy (RFC 1928 section 7): a TCP connection that keeps it alive, and a UDP socket to the
 * proxy. It is established again if either fails.
 */
export class Association {
  readonly #dependencies: AssociationDependencies;
  #queue: { readonly to: SocksAddress; readonly bytes: Uint8Array }[] = [];
  #control: TcpSocket | undefined;
  #socket: UdpSocket | undefined;
  /** The UDP relay of the proxy; undefined while no association exists. */
  #relay: PeerAddress | undefined;
  #retryMs = FIRST_RETRY_MS;
  #cancel = () => {};
  #isClosed = false;

  constructor(dependencies: AssociationDependencies) {
    this.#dependencies = dependencies;
    this.#begin();
  }

  send(bytes: Uint8Array, to: SocksAddress): void {
    if (this.#relay) {
      this.#socket!.send(encodeSocksDatagram(to, bytes), this.#relay);
      return;
    }
    // A copy: the caller may reuse the buffer.
    this.#queue.push({ to, bytes: bytes.slice() });
    if (this.#queue.length > MAX_QUEUED) this.#queue.shift();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#queue = [];
    this.#control?.close();
    this.#socket?.close();
  }

  #begin(): void {
    if (this.#isClosed) return;
    const { proxy } = this.#dependencies;
    const remote = { host: proxy.host, port: proxy.port };
    const handlers = {
      opened: (bound: SocksAddress | undefined, at: PeerAddress) => void this.#associated(bound!, at),
      refused: (refusal: ProxyRefusal) => {
        if (refusal.kind === "unsupported") this.#dependencies.unsupported(refusal);
      },
      // The proxy sends nothing on this connection; closing it ends the association.
      received: () => {},
      drained: () => {},
      closed: () => this.#ended(),
    };
    const request = { command: "associate", to: ANYWHERE } as const;
    this.#control = openTunnel(this.#dependencies, request, remote, handlers, ASSOCIATE_MS);
  }

  async #associated(bound: SocksAddress, proxy: PeerAddress): Promise<void> {
    const control = this.#control;
    // The reported address is ignored: it is wrong if the proxy is behind NAT, and only the proxy itself may be contacted.
    const relay = { host: proxy.host, port: bound.port };
    try {
      if (bound.port === 0) throw new DecodeError("SOCKS5 answer", 0, "association without a port");
      const socket = await this.#bind(relay);
      if (this.#isClosed || this.#control !== control) return socket.close();
      this.#socket = socket;
      this.#relay = relay;
      this.#retryMs = FIRST_RETRY_MS;
      for (const { to, bytes } of this.#queue.splice(0)) this.send(bytes, to);
    } catch (thrown) {
      this.#dependencies.health.failed(
        `${this.#dependencies.proxy.text}: ${messageOf(thrown)}`,
        this.#dependencies.clock.now(),
      );
      control?.close();
    }
  }

  #bind(relay: PeerAddress): Promise<UdpSocket> {
    const { net, options } = this.#dependencies;
    return net.bindUdp(bindAddress(relay.host), (bytes, from) => this.#received(bytes, from, relay), options);
  }

  #received(bytes: Uint8Array, from: PeerAddress, relay: PeerAddress): void {
    // Datagrams from other senders are ignored.
    if (from.host !== relay.host || from.port !== relay.port) return;
    try {
      const datagram = decodeSocksDatagram(bytes);
      const host = canonicalAddress(datagram.from.host);
      if (host !== undefined && datagram.from.port > 0)
        this.#dependencies.received(datagram.payload, { host, port: datagram.from.port });
    } catch (thrown) {
      // A malformed datagram is dropped.
      if (!(thrown instanceof DecodeError)) throw thrown;
    }
  }

  #ended(): void {
    this.#socket?.close();
    this.#socket = this.#relay = this.#control = undefined;
    const { clock } = this.#dependencies;
    if (this.#isClosed) return;
    this.#cancel = clock.at(after(clock.now(), this.#retryMs), () => this.#begin());
    this.#retryMs = Math.min(LONGEST_RETRY_MS, 2 * this.#retryMs);
  }
}

/** Returns the address for a socket to the proxy: loopback if the proxy is on this machine. */
function bindAddress(proxy: string): PeerAddress {
  const isLocal = addressScope(proxy) === "loopback";
  if (familyOf(proxy) === 4) return { host: isLocal ? "127.0.0.1" : "0.0.0.0", port: 0 };
  return { host: isLocal ? "::1" : "::", port: 0 };
}
