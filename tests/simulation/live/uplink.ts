import type { EventHeap } from "./event-heap.ts";

interface Parcel {
  readonly bytes: number;
  readonly expiresMs: number;
  readonly madeUs: number;
  /** A queued message and its receiver. */
  readonly to: object;
  readonly name: number;
  readonly go: () => void;
}

const LIVE = 1;

/** One uplink: sends one message after another, live before repair before backlog, and drops expired ones. */
export class Uplink {
  readonly #events: EventHeap;
  readonly #bytesPerSecond: number;
  readonly #queues: { parcels: Parcel[]; taken: number }[] = Array.from({ length: 4 }, () => ({
    parcels: [],
    taken: 0,
  }));
  #isBusy = false;
  sentBytes = 0;

  constructor(events: EventHeap, bytesPerSecond: number) {
    this.#events = events;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** How long the oldest live message has waited, in ms. */
  get liveWaitMs(): number {
    const { parcels, taken } = this.#queues[LIVE]!;
    const oldest = parcels[taken];
    return oldest ? (this.#events.nowUs - oldest.madeUs) / 1_000 : 0;
  }

  /** Queues a message; `go` runs when its last bit has been sent. */
  send(priority: number, bytes: number, expiresMs: number, to: object, name: number, go: () => void): void {
    if (this.#bytesPerSecond <= 0) return;
    this.#queues[priority]!.parcels.push({ bytes, expiresMs, madeUs: this.#events.nowUs, to, name, go });
    if (!this.#isBusy) this.#next();
  }

  /** Removes requested and backlog chunks that were cancelled. */
  cancel(to: object, name: number): void {
    for (let priority = LIVE + 1; priority < this.#queues.length; priority++) {
      const { parcels, taken } = this.#queues[priority]!;
      for (let i = taken; i < parcels.length; i++) {
        if (parcels[i]!.to !== to || parcels[i]!.name !== name) continue;
        parcels.splice(i, 1);
        return;
      }
    }
  }

  #next(): void {
    for (const queue of this.#queues) {
      while (queue.taken < queue.parcels.length) {
        const parcel = queue.parcels[queue.taken++]!;
        if (queue.taken > 64 && 2 * queue.taken > queue.parcels.length) {
          queue.parcels.splice(0, queue.taken);
          queue.taken = 0;
        }
        if (parcel.expiresMs < this.#events.nowMs) continue;
        this.#isBusy = true;
        this.sentBytes += parcel.bytes;
        this.#events.at(this.#events.nowUs + (parcel.bytes / this.#bytesPerSecond) * 1e6, () => {
          parcel.go();
          this.#next();
        });
        return;
      }
    }
    this.#isBusy = false;
  }
}
