import { SluiceError } from "../../base/errors.ts";

/** The documentation networks (RFC 5737), which contain no real hosts. */
const NETWORKS = ["192.0.2", "198.51.100", "203.0.113"] as const;
const HOSTS = 254;
/** A host name that can be sent to a proxy: DNS characters and length (RFC 1035 section 2.3.4). */
const NAME = /^[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_.])?$/i;

/**
 * Assigns placeholder addresses to names that only the proxy resolves. The engine treats them as ordinary addresses; when
 * traffic leaves, the proxy gets the name instead. The least recently used of the 762 addresses is reassigned.
 */
export class PlaceholderAddresses {
  /** Addresses by name, least recently used first. */
  readonly #addresses = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** Returns the placeholder of a name. Throws `url_refused` if the name is malformed. */
  of(name: string): string {
    const key = name.toLowerCase().replace(/\.$/, "");
    if (!NAME.test(key)) throw new SluiceError("url_refused", "expected a host name");
    const address = this.#addresses.get(key) ?? this.#free();
    this.#addresses.delete(key);
    this.#addresses.set(key, address);
    this.#names.set(address, key);
    return address;
  }

  /** Returns the name of a placeholder; undefined for an ordinary address. */
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
