import { addressText, type PeerAddress } from "../../src/base/address.ts";
import { type Random, shuffle } from "../../src/base/random.ts";
import type { AnnounceReply, AnnounceRequest } from "../../src/wire/tracker/announce.ts";

/** A tracker: remembers which peers announced, and returns them to others. */
export class SimulatedTracker {
  readonly #random: Random;
  readonly #peers = new Map<string, PeerAddress>();
  readonly announces: AnnounceRequest[] = [];
  intervalSeconds = 1800;
  minIntervalSeconds: number | undefined = 60;
  isDown = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Peers that are known without having announced. */
  know(addresses: readonly PeerAddress[]): void {
    for (const address of addresses) this.#peers.set(addressText(address), address);
  }

  forget(address: PeerAddress): void {
    this.#peers.delete(addressText(address));
  }

  announce(request: AnnounceRequest, from: PeerAddress): AnnounceReply {
    this.announces.push(request);
    if (this.isDown) return { ok: false, reason: "time-out" };
    const own = addressText(from);
    const others = [...this.#peers].filter(([key]) => key !== own).map(([, address]) => address);
    if (request.event === "stopped") this.#peers.delete(own);
    else this.#peers.set(own, from);
    return {
      ok: true,
      peers: shuffle(others, this.#random).slice(0, request.numWant),
      intervalSeconds: this.intervalSeconds,
      ...(this.minIntervalSeconds !== undefined && { minIntervalSeconds: this.minIntervalSeconds }),
    };
  }
}
