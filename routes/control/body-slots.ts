import { SluiceError } from "../../src/base/errors.ts";
import { householdOf } from "../../src/base/network.ts";
import type { RequestOrigin } from "../../src/runtime/contract.ts";
import { askerOf } from "../access.ts";
import type { Asker } from "../access-decision.ts";

/** Who sends a body: the neighbourhood that it comes from, and whether that is this host. */
export interface Sender {
  readonly network: string;
  readonly asker: Asker;
}

/** The sender of a request. */
export function senderOf(origin: RequestOrigin): Sender {
  return { network: householdOf(origin.remote.host), asker: askerOf(origin) };
}

/** How many bodies may be read at once. */
export interface BodyLimits {
  /** From other hosts, all together; this host has as many again for itself. */
  readonly total: number;
  readonly perSender: number;
}

/** Places for bodies that are being read: no sender can take them all, and none from elsewhere those of this host. */
export class BodySlots {
  readonly #limits: BodyLimits;
  readonly #bySender = new Map<string, number>();
  #local = 0;
  #elsewhere = 0;

  constructor(limits: BodyLimits) {
    this.#limits = limits;
  }

  /** Takes a place; the returned function gives it back. Throws `too_many` where there is none. */
  take({ network, asker }: Sender): () => void {
    const { total, perSender } = this.#limits;
    const isLocal = asker === "local";
    const own = this.#bySender.get(network) ?? 0;
    if ((isLocal ? this.#local : this.#elsewhere) >= total || (!isLocal && own >= perSender))
      throw new SluiceError("too_many", "other uploads are being read; try again when they are over");
    this.#count(network, isLocal, 1);
    return () => this.#count(network, isLocal, -1);
  }

  #count(network: string, isLocal: boolean, change: 1 | -1): void {
    if (isLocal) this.#local += change;
    else this.#elsewhere += change;
    const now = (this.#bySender.get(network) ?? 0) + change;
    if (now === 0) this.#bySender.delete(network);
    else this.#bySender.set(network, now);
  }
}
