import { addressScope, familyOf } from "../../../base/address.ts";
import type { Log } from "../../../base/log.ts";
import { isInNetwork } from "../../../base/network.ts";
import { after, type Instant } from "../../../base/time.ts";
import type { Clock, OwnNetwork, Runtime } from "../../../runtime/contract.ts";

/** How soon an address that came or went is noticed: a VPN that breaks off must not be missed for long, and asking costs
 * a fraction of a millisecond. */
const LOOK_MS = 1_000;
/** More are not remembered, and cost a little more each. */
const MAX_VERDICTS = 4_096;

/** The addresses that traffic may leave from: those of an interface, or one alone, as they are now. */
export class BoundAddresses {
  readonly #bind: string;
  readonly #clock: Clock;
  readonly #surroundings: Pick<Runtime["surroundings"], "networks">;
  readonly #log: Log;
  readonly #watchers = new Set<() => void>();
  #networks: readonly OwnNetwork[] = [];
  #fresh: Instant | undefined;
  /** What {@link elsewhere} said of each address since: datagrams come by the thousand. */
  readonly #verdicts = new Map<string, string | undefined>();
  /** As they were when the log was last told. */
  #told: string;
  #isWatching = false;

  constructor(bind: string, runtime: Pick<Runtime, "clock" | "surroundings">, log: Log) {
    this.#bind = bind;
    this.#clock = runtime.clock;
    this.#surroundings = runtime.surroundings;
    this.#log = log;
    this.#told = this.#text();
    if (this.#told === "") log.warn("there is no such interface or address yet: nothing leaves", { bind });
  }

  /** The address of a family; undefined where there is none. */
  of(family: 4 | 6): string | undefined {
    return this.#own().find(({ host }) => familyOf(host) === family && isSpoken(host))?.host;
  }

  has(host: string): boolean {
    return this.#own().some((network) => network.host === host);
  }

  /** Why nothing leaves for an address of this family, where {@link of} has none. */
  problem(family: 4 | 6): string {
    const what = this.#own().length === 0 ? "is not there" : `has no IPv${family} address`;
    return `${this.#bind} ${what}, and nothing leaves elsewhere (see the setting bind)`;
  }

  /** The other interface that a neighbour is at: the system would leave by that one, whatever address we name. */
  elsewhere(host: string): string | undefined {
    const networks = this.#all();
    if (this.#verdicts.has(host)) return this.#verdicts.get(host);
    const near = networks.filter((network) => !network.isLoopback && isInNetwork(host, network));
    const isHere = near.length === 0 || near.some((network) => this.#isOwn(network));
    const verdict = isHere ? undefined : near[0]!.interfaceName;
    if (this.#verdicts.size < MAX_VERDICTS) this.#verdicts.set(host, verdict);
    return verdict;
  }

  /** Whether a network, by the name that multicast knows it by, may be spoken to. */
  mayJoin(networkAddress: string): boolean {
    return this.#own().some(({ multicastAddress }) => multicastAddress === networkAddress);
  }

  /** Calls `looked` about each second, until the returned function is called: what is there may have changed. */
  watch(looked: () => void): () => void {
    this.#watchers.add(looked);
    if (!this.#isWatching) this.#lookAgain();
    return () => void this.#watchers.delete(looked);
  }

  #lookAgain(): void {
    this.#isWatching = this.#watchers.size > 0;
    if (!this.#isWatching) return;
    this.#clock.at(after(this.#clock.now(), LOOK_MS), () => {
      this.#fresh = undefined;
      const text = this.#text();
      if (text !== this.#told) this.#tell(text);
      for (const looked of [...this.#watchers]) looked();
      this.#lookAgain();
    });
  }

  #tell(text: string): void {
    this.#told = text;
    if (text === "") this.#log.warn("the interface is gone: nothing leaves", { bind: this.#bind });
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
    if (this.#fresh === undefined || now >= this.#fresh) {
      this.#networks = this.#surroundings.networks();
      this.#verdicts.clear();
      this.#fresh = after(now, LOOK_MS);
    }
    return this.#networks;
  }
}

/** Addresses of one link alone need a zone, which nobody outside has. */
function isSpoken(host: string): boolean {
  return familyOf(host) === 4 || addressScope(host) !== "link-local";
}
