import { SeedFault } from "./seed-fault.ts";

/** Connections to one server for all content together: more would be taken for an attack, and win nothing. */
const MAX_PER_SERVER = 6;
/** Who waits for a connection of one server: as many as all transfers can have lanes. */
const MAX_WAITING = 1_000;

/** Counts the connections to web seeds, by server: whoever comes when there are enough waits for its turn. */
export class ServerSlots {
  readonly #open = new Map<string, number>();
  readonly #waiting = new Map<string, (() => void)[]>();

  /** Resolves with what gives the connection back. Rejects with the signal's reason where that fires first, or with a
   * `SeedFault`. */
  take(server: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const open = this.#open.get(server) ?? 0;
    if (open < MAX_PER_SERVER) {
      this.#open.set(server, open + 1);
      return Promise.resolve(this.#giver(server));
    }
    return this.#wait(server, signal);
  }

  #wait(server: string, signal: AbortSignal): Promise<() => void> {
    const queue = this.#waiting.get(server) ?? [];
    if (queue.length >= MAX_WAITING)
      return Promise.reject(new SeedFault("later", "too many of our own wait for this server"));
    this.#waiting.set(server, queue);
    return new Promise((resolve, reject) => {
      const next = () => {
        signal.removeEventListener("abort", gone);
        resolve(this.#giver(server));
      };
      const gone = () => {
        queue.splice(queue.indexOf(next), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", gone, { once: true });
      queue.push(next);
    });
  }

  #giver(server: string): () => void {
    let isGiven = false;
    return () => {
      if (isGiven) return;
      isGiven = true;
      const next = this.#waiting.get(server)?.shift();
      if (next) return next();
      const open = this.#open.get(server)! - 1;
      this.#waiting.delete(server);
      if (open > 0) this.#open.set(server, open);
      else this.#open.delete(server);
    };
  }
}
