import { SluiceError } from "../../src/base/errors.ts";
import { householdOf } from "../../src/base/network.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import { clientNetworkOf } from "../http/access.ts";

/** The sender of a body: the subnet that it comes from, and whether it is this host. */
export interface Sender {
  readonly subnet: string;
  readonly isLocal: boolean;
}

/** Returns the sender of a request. */
export function senderOf(origin: RequestOrigin): Sender {
  return { subnet: householdOf(origin.remote.host), isLocal: clientNetworkOf(origin) === "local" };
}

/** How many bodies the engine reads at the same time. */
export interface BodyLimits {
  /** From all other hosts together; this host has the same number of its own. */
  readonly total: number;
  readonly perSender: number;
}

/** Limits the bodies that are read at the same time: no sender can use all slots, and no other host those of this host. */
export class BodySlots {
  readonly #limits: BodyLimits;
  readonly #bySender = new Map<string, number>();
  #local = 0;
  #remote = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Takes a slot; the returned function releases it. Throws `too_many` if no slot is free. */
  take({ subnet, isLocal }: Sender): () => void {
    const { total, perSender } = this.#limits;
    const taken = this.#bySender.get(subnet) ?? 0;
    if ((isLocal ? this.#local : this.#remote) >= total || (!isLocal && taken >= perSender))
      throw new SluiceError(
        "too_many",
        "the upload limit is reached; try again when other uploads have ended",
      );
    this.#count(subnet, isLocal, 1);
    return () => this.#count(subnet, isLocal, -1);
  }

  #count(subnet: string, isLocal: boolean, change: 1 | -1): void {
    if (isLocal) this.#local += change;
    else this.#remote += change;
    const taken = (this.#bySender.get(subnet) ?? 0) + change;
    if (taken === 0) this.#bySender.delete(subnet);
    else this.#bySender.set(subnet, taken);
  }
}
