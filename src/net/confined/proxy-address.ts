import { canonicalAddress } from "../../base/address.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";

/** Lifetime of a DNS result for the proxy. */
const LOOKUP_TTL_MS = 60_000;

/** Resolves the address of the proxy. In strict mode this is the only name that this machine resolves. */
export class ProxyAddress {
  readonly #host: string;
  readonly #clock: Pick<Clock, "now">;
  readonly #lookup: (name: string) => Promise<string[]>;
  #lookedUp: { readonly addresses: Promise<string[]>; readonly until: Instant } | undefined;
  #index = 0;

  constructor(host: string, clock: Pick<Clock, "now">, lookup: (name: string) => Promise<string[]>) {
    this.#host = host;
    this.#clock = clock;
    this.#lookup = lookup;
  }

  /** Returns the address to connect to. Rejects if the name has none. */
  async current(): Promise<string> {
    const literal = canonicalAddress(this.#host);
    if (literal !== undefined) return literal;
    const now = this.#clock.now();
    if (this.#lookedUp === undefined || this.#lookedUp.until <= now)
      this.#lookedUp = { addresses: this.#lookup(this.#host), until: after(now, LOOKUP_TTL_MS) };
    const addresses = await this.#lookedUp.addresses.catch((error: unknown) => {
      this.#lookedUp = undefined;
      throw error;
    });
    const address = addresses[this.#index % addresses.length];
    if (address === undefined) throw new Error(`${this.#host} has no address`);
    return address;
  }

  /** Reports that the current address failed; the next one is used. */
  failed(): void {
    this.#index++;
  }
}
