import { addressScope, type PeerAddress } from "../../../base/address.ts";
import { messageOf } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import { after } from "../../../base/time.ts";
import type { DatagramReceiver, Net, UdpOptions, UdpSocket } from "../../../runtime/contract.ts";
import { Association } from "./association.ts";
import type { ProxyRefusal } from "./proxy-talk.ts";
import type { StandIns } from "./stand-ins.ts";
import type { DoorParts } from "./tunnel.ts";

/** Names that are spoken to at once: trackers and first nodes of the DHT. With more the longest silent one goes. */
const MAX_NAMES = 16;
/** An answer comes in seconds, the next question in minutes. */
const NAME_IDLE_MS = 120_000;

/** What a socket through the proxy is made of. */
export interface ProxiedUdpParts {
  readonly door: Omit<DoorParts, "net">;
  readonly net: Net;
  readonly standIns: StandIns;
  readonly isStrict: boolean;
  /** Says a thing once, however often it happens. */
  readonly warnOnce: Log["warn"];
}

/**
 * A UDP socket of which all goes through a SOCKS5 proxy. A name that the proxy looks up has an association of its own, so
 * that what comes out of it is known to be that name's answer, from whatever address. Where the proxy carries no datagrams
 * nothing is sent; where it may be gone around, all of it directly.
 */
export class ProxiedUdp implements UdpSocket {
  readonly address: PeerAddress;
  readonly #parts: ProxiedUdpParts;
  readonly #wanted: PeerAddress;
  readonly #received: DatagramReceiver;
  readonly #options: UdpOptions;
  readonly #main: Association;
  readonly #named = new Map<string, { readonly association: Association; cancel: () => void }>();
  #direct: UdpSocket | undefined;
  #isUnable = false;
  #isClosed = false;

  constructor(parts: ProxiedUdpParts, wanted: PeerAddress, received: DatagramReceiver, options: UdpOptions) {
    this.#parts = parts;
    this.#wanted = wanted;
    this.#received = received;
    this.#options = options;
    // The proxy reaches both families, whatever this machine has; where it listens for us only it knows.
    this.address = { host: "::", port: wanted.port };
    this.#main = this.#associate((payload, from) => this.#received(payload, from));
  }

  send(bytes: Uint8Array, to: PeerAddress): void {
    if (this.#isClosed) return;
    if (this.#isUnable) {
      this.#direct?.send(bytes, to);
      return;
    }
    // The proxy's own loopback and neighbours' groups are nobody's business.
    const scope = addressScope(to.host);
    if (scope === "loopback" || scope === "multicast" || scope === "unspecified") return;
    const name = this.#parts.standIns.nameOf(to.host);
    if (name === undefined) this.#main.send(bytes, to);
    else this.#ofName(to.host).send(bytes, { host: name, port: to.port });
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

  /** The association of a name, by the address that stands for it. */
  #ofName(standIn: string): Association {
    const { clock } = this.#parts.door;
    const known = this.#named.get(standIn);
    const association =
      known?.association ??
      this.#associate((payload, actual) =>
        this.#received(payload, { host: standIn, port: actual.port }, actual),
      );
    known?.cancel();
    this.#named.delete(standIn);
    const cancel = clock.at(after(clock.now(), NAME_IDLE_MS), () => this.#forget(standIn));
    this.#named.set(standIn, { association, cancel });
    const [oldest] = this.#named.keys();
    if (this.#named.size > MAX_NAMES) this.#forget(oldest!);
    return association;
  }

  #forget(standIn: string): void {
    const known = this.#named.get(standIn);
    known?.cancel();
    known?.association.close();
    this.#named.delete(standIn);
  }

  #associate(received: (payload: Uint8Array, from: PeerAddress) => void): Association {
    const { door, net } = this.#parts;
    const unable = (refusal: ProxyRefusal) => void this.#unable(refusal);
    return new Association({ ...door, net, options: this.#options, received, unable });
  }

  /** The proxy said that it carries no datagrams. */
  async #unable(refusal: ProxyRefusal): Promise<void> {
    if (this.#isUnable || this.#isClosed) return;
    const { isStrict, warnOnce, net, door } = this.#parts;
    const facts = { proxy: door.proxy.text, reason: refusal.message };
    if (isStrict) {
      // Asked again now and then by the association: proxies are configured anew.
      warnOnce("the proxy carries no UDP: no DHT, no uTP, no UDP trackers", facts);
      return;
    }
    this.#isUnable = true;
    this.#main.close();
    for (const standIn of [...this.#named.keys()]) this.#forget(standIn);
    warnOnce("the proxy carries no UDP, which leaves directly (see the setting proxy-strict)", facts);
    try {
      const direct = await net.bindUdp(this.#wanted, this.#received, this.#options);
      if (this.#isClosed) direct.close();
      else this.#direct = direct;
    } catch (thrown) {
      warnOnce("no UDP", { reason: messageOf(thrown) });
    }
  }
}
