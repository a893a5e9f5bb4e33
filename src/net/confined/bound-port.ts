import { familyOf } from "../../base/address.ts";
import { SluiceError } from "../../base/errors.ts";
import type { BoundAddresses } from "./bound-addresses.ts";

/** A socket or listener at one port of the bound addresses and of loopback, which reserves the port. */
export interface AtBoundPort {
  readonly boundPort: BoundPort;
  close(): unknown;
}

/** A port that is free on one address is usually free on the others. */
const ATTEMPTS = 5;

/**
 * Opens a socket or listener at one port of all bound addresses. `open` opens it on loopback, which chooses the port if
 * `wantedPort` is 0; another one is chosen if it is in use on a bound address. Rejects with `port_busy` if the port is in use.
 */
export async function openBoundPort<T extends AtBoundPort>(
  wantedPort: number,
  open: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const opened = await open();
    try {
      await opened.boundPort.begin();
      return opened;
    } catch (error) {
      await opened.close();
      if (wantedPort !== 0 || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Updates a socket or listener as the bound addresses change, one change at a time. */
export class BoundPort {
  readonly #bound: BoundAddresses;
  readonly #update: () => Promise<void>;
  #work: Promise<void> = Promise.resolve();
  #stopWatching = () => {};

  /** `update` closes sockets of removed addresses and opens those of new ones; it rejects if that fails. */
  constructor(bound: BoundAddresses, update: () => Promise<void>) {
    this.#bound = bound;
    this.#update = update;
  }

  /** Runs the first update and watches for changes. Rejects with `port_busy` if the port is in use. */
  async begin(): Promise<void> {
    await this.#update().catch(onlyBusy);
    // An address that is not ready yet is tried again in the next check.
    this.#stopWatching = this.#bound.watch(() => {
      this.#work = this.#work.then(this.#update).catch(() => {});
    });
  }

  /** Stops watching; resolves when a running update has ended. */
  async stop(): Promise<void> {
    this.#stopWatching();
    await this.#work;
  }
}

/** Returns the IP versions of a host; the IPv6 wildcard means both. */
export function boundFamilies(host: string): readonly (4 | 6)[] {
  return host === "" || host === "::" ? [4, 6] : [familyOf(host)];
}

/** Rethrows only `port_busy`; an address that is not ready yet is tried again later. */
function onlyBusy(error: unknown): void {
  if (error instanceof SluiceError && error.code === "port_busy") throw error;
}
