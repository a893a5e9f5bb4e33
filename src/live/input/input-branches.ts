import { type Deferred, deferred } from "../../async/deferred.ts";
import { ProgrammeFilter } from "../../media/programme-filter.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveInput } from "./source.ts";
import { type LiveInputFacts, noFacts } from "./source-feed.ts";

/** Limit of what waits for one reader: 4 s of 16 Mbit/s. */
const MAX_QUEUE_BYTES = 8 * 1024 * 1024;

/** Copies of one stream for several readers. A reader that is too slow loses packets, and delays no other. */
export class InputBranches {
  readonly #clock: Clock;
  readonly #open = new Set<Branch>();
  #hasEnded = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a reader, which gets what is pushed from now on; with `programme`, only that programme of the stream. */
  add(programme?: number): LiveInput {
    const branch = new Branch(programme, this.#clock, () => this.#open.delete(branch));
    if (this.#hasEnded) branch.end();
    else this.#open.add(branch);
    return { facts: branch.facts, packets: () => branch.stream() };
  }

  /** Passes whole packets on. */
  push(packets: Uint8Array): void {
    for (const branch of this.#open) branch.push(packets);
  }

  /** Ends the stream for all readers. */
  end(): void {
    this.#hasEnded = true;
    for (const branch of this.#open) branch.end();
    this.#open.clear();
  }

  /** Returns `input`, whose packets pass these branches whenever they are read. */
  watch(input: LiveInput): LiveInput {
    const packets = () => {
      const reader = input.packets().getReader();
      return new ReadableStream<Uint8Array>(
        {
          pull: async (controller) => {
            try {
              const { done, value } = await reader.read();
              if (done) {
                this.end();
                return controller.close();
              }
              this.push(value);
              controller.enqueue(value);
            } catch (thrown) {
              this.end();
              throw thrown;
            }
          },
          cancel: (reason) => {
            this.end();
            return reader.cancel(reason);
          },
        },
        { highWaterMark: 0 },
      );
    };
    return { facts: input.facts, packets };
  }
}

/** Returns one programme of a source with several. */
export function programmeOf(input: LiveInput, number: number): LiveInput {
  const packets = () => {
    const filter = new ProgrammeFilter(number);
    const reader = input.packets().getReader();
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          for (;;) {
            const { done, value } = await reader.read();
            if (done) return controller.close();
            const own = filter.push(value);
            if (own.length > 0) return controller.enqueue(own);
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  };
  return { facts: input.facts, packets };
}

/** One reader's queue. */
class Branch {
  readonly facts: LiveInputFacts = noFacts();
  readonly #programme: number | undefined;
  readonly #filter: ProgrammeFilter | undefined;
  readonly #clock: Clock;
  readonly #left: () => void;
  #queue: Uint8Array[] = [];
  #queueBytes = 0;
  #hasEnded = false;
  #arrival: Deferred<void> = deferred();

  constructor(programme: number | undefined, clock: Clock, left: () => void) {
    this.#clock = clock;
    this.#programme = programme;
    this.#filter = programme === undefined ? undefined : new ProgrammeFilter(programme);
    this.#left = left;
    this.facts.starts++;
  }

  push(packets: Uint8Array): void {
    const own = this.#filter ? this.#filter.push(packets) : packets;
    this.#explain();
    if (own.length === 0) return;
    this.#queue.push(own);
    this.#queueBytes += own.length;
    while (this.#queueBytes > MAX_QUEUE_BYTES) {
      const { length } = this.#queue.shift()!;
      this.#queueBytes -= length;
      this.facts.droppedBytes += length;
    }
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          while (this.#queue.length === 0 && !this.#hasEnded) await this.#arrival.promise;
          const packets = this.#queue.shift();
          if (!packets) return controller.close();
          this.#queueBytes -= packets.length;
          this.facts.bytes += packets.length;
          this.facts.lastAt = this.#clock.now();
          controller.enqueue(packets);
        },
        cancel: () => {
          this.#left();
          this.#queue = [];
          this.end();
        },
      },
      { highWaterMark: 0 },
    );
  }

  #explain(): void {
    const programmes = this.#filter?.programmes ?? [];
    const isMissing = programmes.length > 0 && !programmes.includes(this.#programme!);
    this.facts.problem = isMissing
      ? `the source has no programme ${this.#programme}; it has ${programmes.slice(0, 20).join(", ")}`
      : undefined;
  }

  #wake(): void {
    const arrival = this.#arrival;
    this.#arrival = deferred();
    arrival.resolve();
  }
}
