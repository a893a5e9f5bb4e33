import { SluiceError } from "../../../base/errors.ts";

/** Three networks that exist in books alone (RFC 5737): nothing is ever there, so none of their addresses is a real one. */
const NETWORKS = ["192.0.2", "198.51.100", "203.0.113"] as const;
const HOSTS = 254;
/** A name as it is asked of a proxy: of the letters of DNS, and no longer (RFC 1035 2.3.4). */
const NAME = /^[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_.])?$/i;

/**
 * Addresses that stand for names which nobody here looks up, because the proxy does. Whoever deals with addresses deals with
 * these as with any other; where they leave, the name goes in their place. Those that were not used for longest are given
 * anew, after 762 others.
 */
export class StandIns {
  /** In the order in which they were last used. */
  readonly #addresses = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** The address that stands for a name. Throws `url_refused` for what is no name. */
  of(name: string): string {
    const key = name.toLowerCase().replace(/\.$/, "");
    if (!NAME.test(key)) throw new SluiceError("url_refused", "expected the name of a host");
    const address = this.#addresses.get(key) ?? this.#free();
    this.#addresses.delete(key);
    this.#addresses.set(key, address);
    this.#names.set(address, key);
    return address;
  }

  /** The name that an address stands for; undefined where it is an address and no more. */
  nameOf(address: string): string | undefined {
    const name = this.#names.get(address);
    if (name === undefined) return undefined;
    this.#addresses.delete(name);
    this.#addresses.set(name, address);
    return name;
  }

  #free(): string {
    const used = this.#names.size;
    const network = NETWORKS[Math.floor(used / HOSTS)];
    if (network !== undefined) return `${network}.${1 + (used % HOSTS)}`;
    const [name, address] = this.#addresses.entries().next().value!;
    this.#addresses.delete(name);
    this.#names.delete(address);
    return address;
  }
}
