import type { PeerAddress } from "../../base/address.ts";
import type { TcpListener } from "../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";
import { type AtBoundPort, BoundPort, boundFamilies, openBoundPort } from "./bound-port.ts";

type ListenAt = (address: PeerAddress) => Promise<TcpListener>;

/**
 * Listens at the bound addresses as they change, always at the same port. A loopback listener reserves the port and accepts
 * connections from this machine.
 */
export class BoundListener implements TcpListener, AtBoundPort {
  readonly address: PeerAddress;
  readonly boundPort: BoundPort;
  readonly #listen: ListenAt;
  readonly #bound: BoundAddresses;
  readonly #families: readonly (4 | 6)[];
  readonly #loopback: TcpListener;
  readonly #open = new Map<string, TcpListener>();
  #isClosed = false;

  private constructor(listen: ListenAt, bound: BoundAddresses, wanted: PeerAddress, loopback: TcpListener) {
    this.#listen = listen;
    this.#bound = bound;
    this.#families = boundFamilies(wanted.host);
    this.#loopback = loopback;
    this.boundPort = new BoundPort(bound, () => this.#update());
    this.address = { host: wanted.host, port: loopback.address.port };
  }

  /** Rejects with `port_busy` if the port is in use. */
  static open(listen: ListenAt, bound: BoundAddresses, wanted: PeerAddress): Promise<TcpListener> {
    return openBoundPort(wanted.port, async () => {
      const loopback = await listen({ host: "127.0.0.1", port: wanted.port });
      return new BoundListener(listen, bound, wanted, loopback);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.boundPort.stop();
    await Promise.all([this.#loopback.close(), ...[...this.#open.values()].map((each) => each.close())]);
  }

  async #update(): Promise<void> {
    const hosts = this.#families.flatMap((family) => this.#bound.of(family) ?? []);
    for (const [host, listener] of this.#open) {
      if (hosts.includes(host)) continue;
      this.#open.delete(host);
      await listener.close();
    }
    for (const host of hosts) {
      if (this.#isClosed || this.#open.has(host)) continue;
      this.#open.set(host, await this.#listen({ host, port: this.address.port }));
    }
  }
}
