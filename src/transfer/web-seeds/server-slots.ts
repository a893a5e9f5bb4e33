import { Slots } from "../../async/slots.ts";
import { SeedFault } from "./seed-fault.ts";

/** Limits the connections to one web seed server across all content. More gain no speed, and servers may block them. */
const OPTIONS = {
  limit: 6,
  // Above the number of lanes of all transfers together.
  queueLimit: 1_000,
  queueFull: () => new SeedFault("later", "too many local requests are waiting for this server"),
};

/** Connection slots for web seeds, by server. */
export class ServerSlots {
  /** Servers with a taken slot. */
  readonly #servers = new Map<string, Slots>();

  /**
   * Takes a connection slot of `server`, in order of arrival. Resolves to the function that releases it. Rejects with the
   * signal's reason, or with `SeedFault` if too many requests wait.
   */
  async take(server: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const slots = this.#servers.get(server) ?? new Slots(OPTIONS);
    this.#servers.set(server, slots);
    const release = await slots.take(signal);
    return () => {
      release();
      if (slots.isIdle && this.#servers.get(server) === slots) this.#servers.delete(server);
    };
  }
}
