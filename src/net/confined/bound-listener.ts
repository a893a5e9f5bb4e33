import type { PeerAddress } from "../../base/address.ts";
import type { Net, TcpHandlers, TcpListener, TcpSocket } from "../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";
import { type AtBoundPort, BoundPort, boundFamilies, openBoundPort } from "./bound-port.ts";

type Accept = (socket: TcpSocket) => TcpHandlers;

/**
 * Listens at the bound addresses as they change, always at the same port. A loopback listener reserves the port and accepts
 * connections from this machine.
 */
export class BoundListener implements TcpListener, AtBoundPort {
  readonly address: PeerAddress;
  readonly boundPort: BoundPort;
  readonly #net: Pick<Net, "listen">;
  readonly #bound: BoundAddresses;
  readonly #families: readonly (4 | 6)[];
  readonly #accept: Accept;
  readonly #loopback: TcpListener;
  readonly #open = new Map<string, TcpListener>();
  #isClosed = false;

  private constructor(
    net: Pick<Net, "listen">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    accept: Accept,
    loopback: TcpListener,
  ) {
    this.#net = net;
    this.#bound = bound;
    this.#families = boundFamilies(wanted.host);
    this.#accept = accept;
    this.#loopback = loopback;
    this.boundPort = new BoundPort(bound, () => this.#update());
    this.address = { host: wanted.host, port: loopback.address.port };
  }

  /** Rejects with `port_busy` if the port is in use. */
  static open(
    net: Pick<Net, "listen">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    accept: Accept,
  ): Promise<TcpListener> {
    return openBoundPort(wanted.port, async () => {
      const loopback = await net.listen({ host: "127.0.0.1", port: wanted.port }, accept);
      return new BoundListener(net, bound, wanted, accept, loopback);
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
      this.#open.set(host, await this.#net.listen({ host, port: this.address.port }, this.#accept));
    }
  }
}
