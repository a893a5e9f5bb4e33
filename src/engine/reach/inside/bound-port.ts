import { familyOf } from "../../../base/address.ts";
import { SluiceError } from "../../../base/errors.ts";
import type { BoundAddresses } from "./bound-addresses.ts";

/** What is open at one port of the bound addresses, and at loopback, which holds that port meanwhile. */
export interface AtBoundPort {
  readonly boundPort: BoundPort;
  close(): unknown;
}

/** A port that is free on one address is most often free on the others. */
const TRIES = 5;

/**
 * Opens something at one port of all bound addresses. `open` opens loopback: where `wantedPort` is 0, that chooses the port,
 * and chooses again where it is taken elsewhere. Rejects with `port_busy` where the port is taken.
 */
export async function openBoundPort<T extends AtBoundPort>(
  wantedPort: number,
  open: () => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const opened = await open();
    try {
      await opened.boundPort.begin();
      return opened;
    } catch (error) {
      await opened.close();
      if (wantedPort !== 0 || tries === TRIES) throw error;
    }
  }
}

/** Follows the bound addresses as they come and go, one change after the other. */
export class BoundPort {
  readonly #bound: BoundAddresses;
  readonly #follow: () => Promise<void>;
  #work: Promise<void> = Promise.resolve();
  #stopWatching = () => {};

  /** `follow` closes what is gone and opens what came; it rejects where that cannot be. */
  constructor(bound: BoundAddresses, follow: () => Promise<void>) {
    this.#bound = bound;
    this.#follow = follow;
  }

  /** Follows for the first time, and from now on. Rejects with `port_busy` where the port is taken. */
  async begin(): Promise<void> {
    await this.#follow().catch(onlyBusy);
    // An address that is not quite there yet is tried again at the next look.
    this.#stopWatching = this.#bound.watch(() => {
      this.#work = this.#work.then(this.#follow).catch(() => {});
    });
  }

  /** Looks no more; resolves when what was begun is done. */
  async stop(): Promise<void> {
    this.#stopWatching();
    await this.#work;
  }
}

/** Which families a host stands for: the wildcard of IPv6 for both. */
export function boundFamilies(host: string): readonly (4 | 6)[] {
  return host === "" || host === "::" ? [4, 6] : [familyOf(host)];
}

/** A port that is taken is told; an address that cannot be listened at yet is tried again. */
function onlyBusy(error: unknown): void {
  if (error instanceof SluiceError && error.code === "port_busy") throw error;
}
