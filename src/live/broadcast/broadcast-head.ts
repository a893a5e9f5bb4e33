import { sleepUntil } from "../../async/sleep.ts";
import { after } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveInput } from "../input/source.ts";

/** Packets, and when they arrived. */
export interface TimedPackets {
  readonly packets: Uint8Array;
  readonly atMs: number;
}

type ReadResult = { readonly done: boolean; readonly value?: Uint8Array | undefined };

/** Limit of buffered data during the measurement: 4 s of 16 Mbit/s. */
const MAX_HEAD_BYTES = 8 * 1024 * 1024;

/** The start of a source: buffered for a measurement, then delivered like the rest. */
export class InputHead {
  readonly received: TimedPackets[] = [];
  readonly #input: LiveInput;
  readonly #clock: Clock;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #reading: Promise<ReadResult> | undefined;
  #bytes = 0;
  #hasEnded = false;

  constructor(input: LiveInput, clock: Clock) {
    this.#input = input;
    this.#clock = clock;
    this.#reader = input.packets().getReader();
  }

  /** Whether the source has ended. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The last error of the source, as a sentence for the user. */
  get problem(): string | undefined {
    return this.#input.facts.problem;
  }

  /** Reads until `measureMs` after the first packets, the end of the source, or the buffer limit; without packets, for
   * `waitMs`. Rejects with the source's error or the signal's reason. */
  async read(waitMs: number, measureMs: number, signal: AbortSignal): Promise<void> {
    let until = after(this.#clock.now(), waitMs);
    while (!this.#hasEnded && this.#bytes < MAX_HEAD_BYTES) {
      const result = await this.#nextBefore(until, signal);
      signal.throwIfAborted();
      if (result === undefined) return;
      this.#hasEnded = result.done;
      if (result.value === undefined) return;
      if (this.received.length === 0) until = after(this.#clock.now(), measureMs);
      this.received.push({ packets: result.value, atMs: this.#clock.now() });
      this.#bytes += result.value.length;
    }
  }

  /** Returns the whole source, buffered packets first. Call this once. */
  rest(): LiveInput {
    const packets = () =>
      new ReadableStream<Uint8Array>(
        {
          pull: async (controller) => {
            const kept = this.received.shift();
            if (kept) return controller.enqueue(kept.packets);
            if (this.#hasEnded) return controller.close();
            const { done, value } = await this.#next();
            if (done || value === undefined) controller.close();
            else controller.enqueue(value);
          },
          cancel: () => this.close(),
        },
        { highWaterMark: 0 },
      );
    return { facts: this.#input.facts, packets };
  }

  /** Closes the source. */
  close(): void {
    this.#reading?.catch(() => {}); // The result is no longer needed.
    this.#reader.cancel().catch(() => {}); // The source is discarded anyway.
  }

  /** Returns the next read; undefined if it takes until `until`. It is then returned by the next call. */
  async #nextBefore(until: ReturnType<typeof after>, signal: AbortSignal) {
    const over = new AbortController();
    const pause = sleepUntil(this.#clock, until, AbortSignal.any([signal, over.signal]));
    this.#reading ??= this.#reader.read();
    try {
      const result = await Promise.race([this.#reading, pause.then(() => undefined)]);
      if (result) this.#reading = undefined;
      return result;
    } finally {
      over.abort();
    }
  }

  #next(): Promise<ReadResult> {
    const reading = this.#reading ?? this.#reader.read();
    this.#reading = undefined;
    return reading;
  }
}
