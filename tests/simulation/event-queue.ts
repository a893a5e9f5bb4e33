import { type Instant, instant } from "../../src/base/time.ts";

interface Event {
  readonly at: number;
  /** Keeps the order of events with the same time. */
  readonly order: number;
  readonly run: () => void;
  isCancelled: boolean;
}

/** Simulated time: runs events in order and skips the time between them. */
export class EventQueue {
  readonly #heap: Event[] = [];
  #now = 0;
  #made = 0;
  #ran = 0;

  get now(): Instant {
    return instant(this.#now);
  }

  /** Number of executed events: a measure of work, and a guard against endless loops. */
  get ran(): number {
    return this.#ran;
  }

  /** Runs `run` at `at`, or now if that has passed. The returned function cancels it. */
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

  /** Runs events up to `until` (ms), or until `isDone` returns true. The time stays at the last event, or
   * at `until`. */
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
