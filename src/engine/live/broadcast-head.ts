import { after } from "../../base/time.ts";
import type { Clock } from "../../runtime/contract.ts";
import type { LiveInput } from "./source.ts";
import { pauseUntil } from "./source-feed.ts";

/** Packets, and when they came. */
export interface CameAt {
  readonly packets: Uint8Array;
  readonly atMs: number;
}

type ReadResult = { readonly done: boolean; readonly value?: Uint8Array | undefined };

/** So much is kept at most while the rate is measured: 4 s of 16 Mbit/s. */
const MAX_HEAD_BYTES = 8 * 1024 * 1024;

/** The beginning of a source: looked at before it is broadcast, and then given out like the rest. */
export class InputHead {
  readonly came: CameAt[] = [];
  readonly #input: LiveInput;
  readonly #clock: Clock;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #reading: Promise<ReadResult> | undefined;
  #bytes = 0;
  #isOver = false;

  constructor(input: LiveInput, clock: Clock) {
    this.#input = input;
    this.#clock = clock;
    this.#reader = input.packets().getReader();
  }

  /** Whether the source has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What went wrong with the source last, for people. */
  get problem(): string | undefined {
    return this.#input.facts.problem;
  }

  /**
   * Reads until `measureMs` after the first packets, the end of the source, or as much as is kept of it; where nothing comes, for `waitMs`.
   * Rejects as the source does, and with the signal's reason.
   */
  async read(waitMs: number, measureMs: number, signal: AbortSignal): Promise<void> {
    let until = after(this.#clock.now(), waitMs);
    while (!this.#isOver && this.#bytes < MAX_HEAD_BYTES) {
      const result = await this.#nextBefore(until, signal);
      signal.throwIfAborted();
      if (result === undefined) return;
      this.#isOver = result.done;
      if (result.value === undefined) return;
      if (this.came.length === 0) until = after(this.#clock.now(), measureMs);
      this.came.push({ packets: result.value, atMs: this.#clock.now() });
      this.#bytes += result.value.length;
    }
  }

  /** The whole source, what was looked at first. To be asked for once. */
  rest(): LiveInput {
    const packets = () =>
      new ReadableStream<Uint8Array>(
        {
          pull: async (controller) => {
            const kept = this.came.shift();
            if (kept) return controller.enqueue(kept.packets);
            if (this.#isOver) return controller.close();
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

  /** Lets the source go. */
  close(): void {
    this.#reading?.catch(() => {}); // Nobody waits for it any more.
    this.#reader.cancel().catch(() => {}); // It is given up either way.
  }

  /** What comes next; undefined where that is not before `until`. What comes later is not lost. */
  async #nextBefore(until: ReturnType<typeof after>, signal: AbortSignal) {
    const over = new AbortController();
    const pause = pauseUntil(this.#clock, until, AbortSignal.any([signal, over.signal]));
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
