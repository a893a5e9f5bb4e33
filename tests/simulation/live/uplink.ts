import type { EventHeap } from "./event-heap.ts";

interface Parcel {
  readonly bytes: number;
  readonly expiresMs: number;
  readonly madeUs: number;
  /** A queued message and its receiver. */
  readonly to: Receiver;
  readonly name: number;
  readonly go: () => void;
}

/** A connection; `hasRoom`: whether its socket accepts more. */
interface Receiver {
  readonly pipe?: { readonly hasRoom: boolean } | undefined;
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

  /** How long the oldest live message of each connection has waited, in ms. */
  liveWaits(): Map<Receiver, number> {
    const waits = new Map<Receiver, number>();
    const { parcels, taken } = this.#queues[LIVE]!;
    for (const { to, madeUs } of parcels.slice(taken))
      if (!waits.has(to)) waits.set(to, (this.#events.nowUs - madeUs) / 1_000);
    return waits;
  }

  /** Queues a message; `go` runs when its last bit has been sent, or when it is handed over to a socket. */
  send(priority: number, bytes: number, expiresMs: number, to: Receiver, name: number, go: () => void): void {
    if (this.#bytesPerSecond <= 0) return;
    this.#queues[priority]!.parcels.push({ bytes, expiresMs, madeUs: this.#events.nowUs, to, name, go });
    if (!this.#isBusy) this.#next();
  }

  /** Removes requested and backlog chunks that were cancelled. */
  cancel(to: Receiver, name: number): void {
    for (let priority = LIVE + 1; priority < this.#queues.length; priority++) {
      const { parcels, taken } = this.#queues[priority]!;
      for (let i = taken; i < parcels.length; i++) {
        if (parcels[i]!.to !== to || parcels[i]!.name !== name) continue;
        parcels.splice(i, 1);
        return;
      }
    }
  }

  /** A socket that was full has room. */
  resume(): void {
    if (!this.#isBusy) this.#next();
  }

  #next(): void {
    for (const queue of this.#queues) {
      for (let parcel = take(queue); parcel; parcel = take(queue)) {
        if (parcel.expiresMs < this.#events.nowMs) continue;
        this.#isBusy = true;
        this.sentBytes += parcel.bytes;
        const { to, go } = parcel;
        // A socket takes it at once; the limit delays what comes after it.
        if (to.pipe) go();
        this.#events.at(this.#events.nowUs + (parcel.bytes / this.#bytesPerSecond) * 1e6, () => {
          if (!to.pipe) go();
          this.#next();
        });
        return;
      }
    }
    this.#isBusy = false;
  }
}

/** Takes the first message for which there is room. */
function take(queue: { parcels: Parcel[]; taken: number }): Parcel | undefined {
  const { parcels } = queue;
  for (let i = queue.taken; i < parcels.length; i++) {
    const parcel = parcels[i]!;
    if (parcel.to.pipe?.hasRoom === false) continue;
    if (i > queue.taken) parcels.splice(i, 1);
    else queue.taken++;
    if (queue.taken > 64 && 2 * queue.taken > parcels.length) {
      parcels.splice(0, queue.taken);
      queue.taken = 0;
    }
    return parcel;
  }
  return undefined;
}
