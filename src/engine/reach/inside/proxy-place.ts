import { canonicalAddress } from "../../../base/address.ts";
import { after, type Instant } from "../../../base/time.ts";
import type { Clock } from "../../../runtime/contract.ts";

/** Many connections begin at once; a proxy that moves is found again within so long. */
const FRESH_MS = 60_000;

/** Where the proxy is. Its own name is the one name that this machine looks up in strict mode: nobody else can. */
export class ProxyPlace {
  readonly #host: string;
  readonly #clock: Pick<Clock, "now">;
  readonly #lookup: (name: string) => Promise<string[]>;
  #found: { readonly addresses: Promise<string[]>; readonly until: Instant } | undefined;
  #turn = 0;

  constructor(host: string, clock: Pick<Clock, "now">, lookup: (name: string) => Promise<string[]>) {
    this.#host = host;
    this.#clock = clock;
    this.#lookup = lookup;
  }

  /** The address that is dialled. Rejects where the name has none. */
  async address(): Promise<string> {
    const literal = canonicalAddress(this.#host);
    if (literal !== undefined) return literal;
    const now = this.#clock.now();
    if (this.#found === undefined || this.#found.until <= now)
      this.#found = { addresses: this.#lookup(this.#host), until: after(now, FRESH_MS) };
    const addresses = await this.#found.addresses.catch((error: unknown) => {
      this.#found = undefined;
      throw error;
    });
    const address = addresses[this.#turn % addresses.length];
    if (address === undefined) throw new Error(`${this.#host} has no address`);
    return address;
  }

  /** Nobody answered there: the next one of its addresses has its turn. */
  failed(): void {
    this.#turn++;
  }
}
