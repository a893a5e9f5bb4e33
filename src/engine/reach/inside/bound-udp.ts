import { addressScope, familyOf, type PeerAddress } from "../../../base/address.ts";
import type { DatagramReceiver, Net, UdpOptions, UdpSocket } from "../../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";
import { type AtBoundPort, BoundPort, boundFamilies, openBoundPort } from "./bound-port.ts";

/**
 * One UDP socket at the bound addresses as they come and go, always at one port. Loopback holds that port meanwhile, and
 * speaks with who is on this machine. What no address of ours may send is lost, as datagrams are.
 */
export class BoundUdp implements UdpSocket, AtBoundPort {
  readonly address: PeerAddress;
  readonly boundPort: BoundPort;
  readonly #net: Pick<Net, "bindUdp">;
  readonly #bound: BoundAddresses;
  readonly #families: readonly (4 | 6)[];
  readonly #received: DatagramReceiver;
  readonly #options: UdpOptions;
  readonly #anchor: UdpSocket;
  readonly #open = new Map<4 | 6, UdpSocket>();
  #isClosed = false;

  private constructor(
    net: Pick<Net, "bindUdp">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    ears: { readonly received: DatagramReceiver; readonly options: UdpOptions },
    anchor: UdpSocket,
  ) {
    this.#net = net;
    this.#bound = bound;
    this.#families = boundFamilies(wanted.host);
    this.#received = ears.received;
    this.#options = ears.options;
    this.#anchor = anchor;
    this.boundPort = new BoundPort(bound, () => this.#follow());
    this.address = { host: wanted.host === "" ? "::" : wanted.host, port: anchor.address.port };
  }

  /** Rejects with `port_busy` where the port is taken. */
  static open(
    net: Pick<Net, "bindUdp">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    received: DatagramReceiver,
    options: UdpOptions,
  ): Promise<UdpSocket> {
    return openBoundPort(wanted.port, async () => {
      const anchor = await net.bindUdp({ host: "127.0.0.1", port: wanted.port }, received, options);
      return new BoundUdp(net, bound, wanted, { received, options }, anchor);
    });
  }

  send(bytes: Uint8Array, to: PeerAddress): void {
    if (addressScope(to.host) === "loopback") {
      if (familyOf(to.host) === 4) this.#anchor.send(bytes, to);
      return;
    }
    const socket = this.#open.get(familyOf(to.host));
    // Between two looks the address may have gone: IPv6 would leave by another way.
    if (!socket || !this.#bound.has(socket.address.host)) return;
    if (this.#bound.elsewhere(to.host) === undefined) socket.send(bytes, to);
  }

  close(): void {
    this.#isClosed = true;
    void this.boundPort.stop();
    this.#anchor.close();
    for (const socket of this.#open.values()) socket.close();
    this.#open.clear();
  }

  async #follow(): Promise<void> {
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
