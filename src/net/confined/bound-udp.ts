import { addressScope, familyOf, type PeerAddress } from "../../base/address.ts";
import type { DatagramReceiver, Net, UdpOptions, UdpSocket } from "../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";
import { type AtBoundPort, BoundPort, boundFamilies, openBoundPort } from "./bound-port.ts";

/**
 * A UDP socket at the bound addresses as they change, always at the same port. A loopback socket reserves the port and serves
 * this machine. Datagrams that no bound address can send are dropped.
 */
export class BoundUdp implements UdpSocket, AtBoundPort {
  readonly address: PeerAddress;
  readonly boundPort: BoundPort;
  readonly #net: Pick<Net, "bindUdp">;
  readonly #bound: BoundAddresses;
  readonly #families: readonly (4 | 6)[];
  readonly #received: DatagramReceiver;
  readonly #options: UdpOptions;
  readonly #loopback: UdpSocket;
  readonly #open = new Map<4 | 6, UdpSocket>();
  #isClosed = false;

  private constructor(
    net: Pick<Net, "bindUdp">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    receiver: { readonly received: DatagramReceiver; readonly options: UdpOptions },
    loopback: UdpSocket,
  ) {
    this.#net = net;
    this.#bound = bound;
    this.#families = boundFamilies(wanted.host);
    this.#received = receiver.received;
    this.#options = receiver.options;
    this.#loopback = loopback;
    this.boundPort = new BoundPort(bound, () => this.#update());
    this.address = { host: wanted.host === "" ? "::" : wanted.host, port: loopback.address.port };
  }

  /** Rejects with `port_busy` if the port is in use. */
  static open(
    net: Pick<Net, "bindUdp">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    received: DatagramReceiver,
    options: UdpOptions,
  ): Promise<UdpSocket> {
    return openBoundPort(wanted.port, async () => {
      const loopback = await net.bindUdp({ host: "127.0.0.1", port: wanted.port }, received, options);
      return new BoundUdp(net, bound, wanted, { received, options }, loopback);
    });
  }

  send(bytes: Uint8Array, to: PeerAddress): void {
    if (addressScope(to.host) === "loopback") {
      if (familyOf(to.host) === 4) this.#loopback.send(bytes, to);
      return;
    }
    const socket = this.#open.get(familyOf(to.host));
    // The address may be gone since the last check; IPv6 would then use another interface.
    if (!socket || !this.#bound.has(socket.address.host)) return;
    if (this.#bound.otherInterface(to.host) === undefined) socket.send(bytes, to);
  }

  close(): void {
    this.#isClosed = true;
    void this.boundPort.stop();
    this.#loopback.close();
    for (const socket of this.#open.values()) socket.close();
    this.#open.clear();
  }

  async #update(): Promise<void> {
    for (const family of this.#families) {
      const host = this.#bound.of(family);
      const before = this.#open.get(family);
      if (before?.address.host === host) continue;
      before?.close();
      this.#open.delete(family);
      if (host === undefined || this.#isClosed) continue;
      const at = { host, port: this.address.port };
      const socket = await this.#net.bindUdp(at, this.#received, this.#options);
      if (this.#isClosed) socket.close();
      else this.#open.set(family, socket);
    }
  }
}
