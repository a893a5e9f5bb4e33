import { familyOf, type PeerAddress } from "../../../base/address.ts";
import { SluiceError } from "../../../base/errors.ts";
import type { Net, TcpHandlers, TcpListener, TcpSocket } from "../../../runtime/contract.ts";
import type { BoundAddresses } from "./bound-addresses.ts";

type Accept = (socket: TcpSocket) => TcpHandlers;

/** A port that is free on one address is most often free on the others. */
const TRIES = 5;

/**
 * Listens at the bound addresses as they come and go, always at one port. Loopback holds that port meanwhile, and lets in
 * who is on this machine.
 */
export class BoundListener implements TcpListener {
  readonly address: PeerAddress;
  readonly #net: Pick<Net, "listen">;
  readonly #bound: BoundAddresses;
  readonly #families: readonly (4 | 6)[];
  readonly #accept: Accept;
  readonly #anchor: TcpListener;
  readonly #open = new Map<string, TcpListener>();
  #stopWatching = () => {};
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(
    net: Pick<Net, "listen">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    accept: Accept,
    anchor: TcpListener,
  ) {
    this.#net = net;
    this.#bound = bound;
    this.#families = boundFamilies(wanted.host);
    this.#accept = accept;
    this.#anchor = anchor;
    this.address = { host: wanted.host, port: anchor.address.port };
  }

  /** Rejects with `port_busy` where the port is taken. */
  static async open(
    net: Pick<Net, "listen">,
    bound: BoundAddresses,
    wanted: PeerAddress,
    accept: Accept,
  ): Promise<TcpListener> {
    for (let tries = 1; ; tries++) {
      const anchor = await net.listen({ host: "127.0.0.1", port: wanted.port }, accept);
      const listener = new BoundListener(net, bound, wanted, accept, anchor);
      try {
        await listener.#follow().catch(onlyBusy);
        listener.#stopWatching = bound.watch(() => listener.#look());
        return listener;
      } catch (error) {
        await listener.close();
        if (wanted.port !== 0 || tries === TRIES) throw error;
      }
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWatching();
    await this.#work.catch(() => {}); // It was told to whoever caused it.
    await Promise.all([this.#anchor.close(), ...[...this.#open.values()].map((each) => each.close())]);
  }

  /** An address that is not quite there yet is tried again at the next look. */
  #look(): void {
    this.#work = this.#work.then(() => this.#follow()).catch(() => {});
  }

  async #follow(): Promise<void> {
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

/** Which families a host stands for: the wildcard of IPv6 for both. */
export function boundFamilies(host: string): readonly (4 | 6)[] {
  return host === "" || host === "::" ? [4, 6] : [familyOf(host)];
}

/** A port that is taken is told; an address that cannot be listened at yet is tried again. */
export function onlyBusy(error: unknown): void {
  if (error instanceof SluiceError && error.code === "port_busy") throw error;
}
