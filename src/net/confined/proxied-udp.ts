import { addressScope, type PeerAddress } from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { after } from "../../base/time.ts";
import type { DatagramReceiver, Net, UdpOptions, UdpSocket } from "../../runtime/contract.ts";
import { Association } from "./association.ts";
import type { PlaceholderAddresses } from "./placeholder-addresses.ts";
import type { ProxyRefusal } from "./proxy-handshake.ts";
import type { ProxyDependencies } from "./tunnel.ts";

/** Names with an association: trackers and DHT bootstrap nodes. Above the limit the least recently used is closed. */
const MAX_NAMES = 16;
/** Responses arrive in seconds; the next request follows minutes later. */
const NAME_IDLE_MS = 120_000;

export interface ProxiedUdpDependencies {
  readonly proxyDependencies: Omit<ProxyDependencies, "net">;
  readonly net: Net;
  readonly placeholders: PlaceholderAddresses;
  readonly isStrict: boolean;
  /** Logs each message only once. */
  readonly warnOnce: Log["warn"];
}

/**
 * A UDP socket through a SOCKS5 proxy. Each name that the proxy resolves has its own association, which identifies responses
 * from that name whatever address they come from. If the proxy does not support UDP, nothing is sent in strict mode; otherwise
 * datagrams are sent directly.
 */
export class ProxiedUdp implements UdpSocket {
  readonly address: PeerAddress;
  readonly #dependencies: ProxiedUdpDependencies;
  readonly #wanted: PeerAddress;
  readonly #received: DatagramReceiver;
  readonly #options: UdpOptions;
  readonly #main: Association;
  readonly #named = new Map<string, { readonly association: Association; cancel: () => void }>();
  #direct: UdpSocket | undefined;
  #isUnsupported = false;
  #isClosed = false;

  constructor(
    dependencies: ProxiedUdpDependencies,
    wanted: PeerAddress,
    received: DatagramReceiver,
    options: UdpOptions,
  ) {
    this.#dependencies = dependencies;
    this.#wanted = wanted;
    this.#received = received;
    this.#options = options;
    // The proxy reaches both IP versions; its external port is unknown.
    this.address = { host: "::", port: wanted.port };
    this.#main = this.#associate((payload, from) => this.#received(payload, from));
  }

  send(bytes: Uint8Array, to: PeerAddress): void {
    if (this.#isClosed) return;
    if (this.#isUnsupported) {
      this.#direct?.send(bytes, to);
      return;
    }
    // Loopback and multicast would address the proxy's own machine and network.
    const scope = addressScope(to.host);
    if (scope === "loopback" || scope === "multicast" || scope === "unspecified") return;
    const name = this.#dependencies.placeholders.nameOf(to.host);
    if (name === undefined) this.#main.send(bytes, to);
    else this.#associationOf(to.host).send(bytes, { host: name, port: to.port });
  }

  close(): void {
    this.#isClosed = true;
    this.#main.close();
    for (const { association, cancel } of this.#named.values()) {
      cancel();
      association.close();
    }
    this.#named.clear();
    this.#direct?.close();
  }

  /** Returns the association of a name, given its placeholder address. */
  #associationOf(placeholder: string): Association {
    const { clock } = this.#dependencies.proxyDependencies;
    const known = this.#named.get(placeholder);
    const association =
      known?.association ??
      this.#associate((payload, actual) =>
        this.#received(payload, { host: placeholder, port: actual.port }, actual),
      );
    known?.cancel();
    this.#named.delete(placeholder);
    const cancel = clock.at(after(clock.now(), NAME_IDLE_MS), () => this.#forget(placeholder));
    this.#named.set(placeholder, { association, cancel });
    const [oldest] = this.#named.keys();
    if (this.#named.size > MAX_NAMES) this.#forget(oldest!);
    return association;
  }

  #forget(placeholder: string): void {
    const known = this.#named.get(placeholder);
    known?.cancel();
    known?.association.close();
    this.#named.delete(placeholder);
  }

  #associate(received: (payload: Uint8Array, from: PeerAddress) => void): Association {
    const { proxyDependencies, net } = this.#dependencies;
    const unsupported = (refusal: ProxyRefusal) => void this.#unsupported(refusal);
    return new Association({ ...proxyDependencies, net, options: this.#options, received, unsupported });
  }

  /** Handles a proxy without UDP support. */
  async #unsupported(refusal: ProxyRefusal): Promise<void> {
    if (this.#isUnsupported || this.#isClosed) return;
    const { isStrict, warnOnce, net, proxyDependencies } = this.#dependencies;
    const facts = { proxy: proxyDependencies.proxy.text, reason: refusal.message };
    if (isStrict) {
      // The association retries: the configuration of the proxy may change.
      warnOnce("the proxy does not support UDP; the DHT, uTP and UDP trackers do not work", facts);
      return;
    }
    this.#isUnsupported = true;
    this.#main.close();
    for (const placeholder of [...this.#named.keys()]) this.#forget(placeholder);
    warnOnce("the proxy does not support UDP, which is sent directly (see the setting proxy-strict)", facts);
    try {
      const direct = await net.bindUdp(this.#wanted, this.#received, this.#options);
      if (this.#isClosed) direct.close();
      else this.#direct = direct;
    } catch (thrown) {
      warnOnce("cannot bind a UDP socket", { reason: messageOf(thrown) });
    }
  }
}
