import { addressScope, familyOf } from "../../base/address.ts";
import type { Log } from "../../base/log.ts";
import { isInNetwork } from "../../base/network.ts";
import { after, type Instant } from "../../base/time.ts";
import type { Clock, OwnNetwork, Runtime } from "../../runtime/contract.ts";

/** Interval at which address changes are detected. A lost VPN must be noticed soon, and a check takes less than a millisecond. */
const CHECK_MS = 1_000;
/** Cached results; further ones are computed each time. */
const MAX_CACHED = 4_096;

/** The present addresses that traffic may leave from: those of an interface, or a single one. */
export class BoundAddresses {
  readonly #bind: string;
  readonly #clock: Clock;
  readonly #surroundings: Pick<Runtime["surroundings"], "networks">;
  readonly #log: Log;
  readonly #watchers = new Set<() => void>();
  #networks: readonly OwnNetwork[] = [];
  #validUntil: Instant | undefined;
  /** Results of {@link otherInterface}, because it runs for every datagram. */
  readonly #otherInterfaces = new Map<string, string | undefined>();
  /** The addresses in the last log message. */
  #logged: string;
  #isWatching = false;

  constructor(bind: string, runtime: Pick<Runtime, "clock" | "surroundings">, log: Log) {
    this.#bind = bind;
    this.#clock = runtime.clock;
    this.#surroundings = runtime.surroundings;
    this.#log = log;
    this.#logged = this.#text();
    if (this.#logged === "")
      log.warn("the interface or address of bind does not exist yet; peer traffic is blocked", { bind });
  }

  /** Returns the address of an IP version; undefined if none exists. */
  of(family: 4 | 6): string | undefined {
    return this.#own().find(({ host }) => familyOf(host) === family && isUsable(host))?.host;
  }

  has(host: string): boolean {
    return this.#own().some((network) => network.host === host);
  }

  /** Returns the error text if {@link of} finds no address. */
  problem(family: 4 | 6): string {
    const state = this.#own().length === 0 ? "does not exist" : `has no IPv${family} address`;
    return `${this.#bind} ${state}; other interfaces are not used (see the setting bind)`;
  }

  /** Returns the interface of a host in another local network. The system would use it whatever the source address is. */
  otherInterface(host: string): string | undefined {
    const networks = this.#all();
    if (this.#otherInterfaces.has(host)) return this.#otherInterfaces.get(host);
    const networksOfHost = networks.filter((network) => !network.isLoopback && isInNetwork(host, network));
    const isOwn = networksOfHost.length === 0 || networksOfHost.some((network) => this.#isOwn(network));
    const result = isOwn ? undefined : networksOfHost[0]!.interfaceName;
    if (this.#otherInterfaces.size < MAX_CACHED) this.#otherInterfaces.set(host, result);
    return result;
  }

  /** Returns true if a network, given its multicast address, may be used. */
  mayJoin(networkAddress: string): boolean {
    return this.#own().some(({ multicastAddress }) => multicastAddress === networkAddress);
  }

  /** Calls `checked` about each second, after a possible change, until the returned function is called. */
  watch(checked: () => void): () => void {
    this.#watchers.add(checked);
    if (!this.#isWatching) this.#scheduleCheck();
    return () => void this.#watchers.delete(checked);
  }

  #scheduleCheck(): void {
    this.#isWatching = this.#watchers.size > 0;
    if (!this.#isWatching) return;
    this.#clock.at(after(this.#clock.now(), CHECK_MS), () => {
      this.#validUntil = undefined;
      const text = this.#text();
      if (text !== this.#logged) this.#logChange(text);
      for (const checked of [...this.#watchers]) checked();
      this.#scheduleCheck();
    });
  }

  #logChange(text: string): void {
    this.#logged = text;
    if (text === "")
      this.#log.warn("the interface of bind is gone; peer traffic is blocked", { bind: this.#bind });
    else this.#log.info("traffic leaves from", { bind: this.#bind, addresses: text });
  }

  #text(): string {
    return this.#own()
      .map(({ host }) => host)
      .join(" ");
  }

  #own(): readonly OwnNetwork[] {
    return this.#all().filter((network) => this.#isOwn(network));
  }

  #isOwn({ host, interfaceName }: OwnNetwork): boolean {
    return interfaceName === this.#bind || host === this.#bind;
  }

  #all(): readonly OwnNetwork[] {
    const now = this.#clock.now();
    if (this.#validUntil === undefined || now >= this.#validUntil) {
      this.#networks = this.#surroundings.networks();
      this.#otherInterfaces.clear();
      this.#validUntil = after(now, CHECK_MS);
    }
    return this.#networks;
  }
}

/** Link-local addresses need a zone and reach no public host. */
function isUsable(host: string): boolean {
  return familyOf(host) === 4 || addressScope(host) !== "link-local";
}
