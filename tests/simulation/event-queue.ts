import { type Instant, instant } from "../../src/base/time.ts";

interface Event {
  readonly at: number;
  /** Keeps events of one instant in the order they were made. */
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Simulated time: runs what is due, in order, and jumps over the time between. */
export class EventQueue {
  readonly #heap: Event[] = [];
  #now = 0;
  #made = 0;
  #ran = 0;

  get now(): Instant {
    return instant(this.#now);
  }

  /** How many events have run: a measure of work, and a guard against loops without end. */
  get ran(): number {
    return this.#ran;
  }

  /** Runs `run` at `at`, or now where that is past; the returned function cancels. */
  at(at: number, run: () => void): () => void {
    const event: Event = { at: Math.max(at, this.#now), order: this.#made++, run, isCancelled: false };
    this.#push(event);
    return () => {
      event.isCancelled = true;
    };
  }

  /** Runs `run` after `ms`. */
  after(ms: number, run: () => void): () => void {
    return this.at(this.#now + ms, run);
  }

  /** Runs events up to `until` (ms), or until `isDone` says so; time stands at the last event or at `until`. */
  run(until: number, isDone: () => boolean = () => false): void {
    while (!isDone()) {
      const next = this.#heap[0];
      if (!next || next.at > until) {
        this.#now = Math.max(this.#now, until);
        return;
      }
      this.#pop();
      if (next.isCancelled) continue;
      this.#now = next.at;
      this.#ran++;
      next.run();
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
