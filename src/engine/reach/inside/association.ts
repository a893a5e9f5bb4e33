import { addressScope, canonicalAddress, familyOf, type PeerAddress } from "../../../base/address.ts";
import { DecodeError, messageOf } from "../../../base/errors.ts";
import { after } from "../../../base/time.ts";
import type { Net, TcpSocket, UdpOptions, UdpSocket } from "../../../runtime/contract.ts";
import { decodeSocksDatagram, encodeSocksDatagram, type SocksPlace } from "../../../wire/socks5.ts";
import type { ProxyRefusal } from "./proxy-talk.ts";
import { type DoorParts, openTunnel } from "./tunnel.ts";

/** What is sent while the association is being made; of more, the oldest are lost, as datagrams are. */
const MAX_WAITING = 32;
/** How long a proxy may take to make one. */
const ASSOCIATE_MS = 15_000;
/** After one that ended, or could not be made, the next one begins so much later, then twice as late each time. */
const FIRST_AGAIN_MS = 2_000;
const LONGEST_AGAIN_MS = 60_000;
const ANYWHERE: SocksPlace = { host: "0.0.0.0", port: 0 };

/** What an association is made of. */
export interface AssociationParts extends DoorParts {
  readonly net: Pick<Net, "connect" | "bindUdp">;
  readonly options: UdpOptions;
  readonly received: (payload: Uint8Array, from: PeerAddress) => void;
  /** The proxy carries no datagrams at all: it was asked, and does not know how. */
  readonly unable: (refusal: ProxyRefusal) => void;
}

/**
 * Datagrams through a SOCKS5 proxy (RFC 1928 7): a connection that holds the association, and a socket that speaks with the
 * proxy alone. Where either breaks off it is made again.
 */
export class Association {
  readonly #parts: AssociationParts;
  #waiting: { readonly to: SocksPlace; readonly bytes: Uint8Array }[] = [];
  #control: TcpSocket | undefined;
  #socket: UdpSocket | undefined;
  /** Where datagrams go to: a port of the proxy's. Undefined while there is no association. */
  #relay: PeerAddress | undefined;
  #againMs = FIRST_AGAIN_MS;
  #cancel = () => {};
  #isClosed = false;

  constructor(parts: AssociationParts) {
    this.#parts = parts;
    this.#begin();
  }

  send(bytes: Uint8Array, to: SocksPlace): void {
    if (this.#relay) {
      this.#socket!.send(encodeSocksDatagram(to, bytes), this.#relay);
      return;
    }
    // A copy: whoever sends may use the bytes again.
    this.#waiting.push({ to, bytes: bytes.slice() });
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#waiting = [];
    this.#control?.close();
    this.#socket?.close();
  }

  #begin(): void {
    if (this.#isClosed) return;
    const { proxy } = this.#parts;
    const remote = { host: proxy.host, port: proxy.port };
    const handlers = {
      opened: (bound: SocksPlace | undefined, at: PeerAddress) => void this.#associated(bound!, at),
      refused: (refusal: ProxyRefusal) => {
        if (refusal.kind === "unable") this.#parts.unable(refusal);
      },
      // A proxy has nothing to say here but that it is over, by closing.
      received: () => {},
      drained: () => {},
      closed: () => this.#ended(),
    };
    const wish = { command: "associate", to: ANYWHERE } as const;
    this.#control = openTunnel(this.#parts, wish, remote, handlers, ASSOCIATE_MS);
  }

  async #associated(bound: SocksPlace, proxy: PeerAddress): Promise<void> {
    const control = this.#control;
    // Whatever address it names: the proxy's is the only one that is spoken to. Behind a router of its own it names a wrong one.
    const relay = { host: proxy.host, port: bound.port };
    try {
      if (bound.port === 0) throw new DecodeError("SOCKS5 answer", 0, "an association without a port");
      const socket = await this.#bind(relay);
      if (this.#isClosed || this.#control !== control) return socket.close();
      this.#socket = socket;
      this.#relay = relay;
      this.#againMs = FIRST_AGAIN_MS;
      for (const { to, bytes } of this.#waiting.splice(0)) this.send(bytes, to);
    } catch (thrown) {
      this.#parts.health.failed(`${this.#parts.proxy.text}: ${messageOf(thrown)}`, this.#parts.clock.now());
      control?.close();
    }
  }

  #bind(relay: PeerAddress): Promise<UdpSocket> {
    const { net, options } = this.#parts;
    return net.bindUdp(here(relay.host), (bytes, from) => this.#heard(bytes, from, relay), options);
  }

  #heard(bytes: Uint8Array, from: PeerAddress, relay: PeerAddress): void {
    // Anybody can send us datagrams; the proxy alone speaks for others.
    if (from.host !== relay.host || from.port !== relay.port) return;
    try {
      const datagram = decodeSocksDatagram(bytes);
      const host = canonicalAddress(datagram.from.host);
      if (host !== undefined && datagram.from.port > 0)
        this.#parts.received(datagram.payload, { host, port: datagram.from.port });
    } catch (thrown) {
      // One datagram is lost.
      if (!(thrown instanceof DecodeError)) throw thrown;
    }
  }

  #ended(): void {
    this.#socket?.close();
    this.#socket = this.#relay = this.#control = undefined;
    const { clock } = this.#parts;
    if (this.#isClosed) return;
    this.#cancel = clock.at(after(clock.now(), this.#againMs), () => this.#begin());
    this.#againMs = Math.min(LONGEST_AGAIN_MS, 2 * this.#againMs);
  }
}

/** Where a socket is bound that speaks with the proxy: at no more of this machine than that takes. */
function here(proxy: string): PeerAddress {
  const isLocal = addressScope(proxy) === "loopback";
  if (familyOf(proxy) === 4) return { host: isLocal ? "127.0.0.1" : "0.0.0.0", port: 0 };
  return { host: isLocal ? "::1" : "::", port: 0 };
}
