import type { LiveInput } from "./source.ts";
import type { LivePlace } from "./source-place.ts";

type Packets = { readonly done: boolean; readonly value?: Uint8Array | undefined };

/**
 * Whether a source is kept open while somebody else is on air. What comes by itself is: nobody takes it up again in the middle in no
 * time, a pipe would stop who feeds it, and only what gives something may be put on air. A file is there whenever it is wanted.
 */
export function isKeptWarm({ kind }: LivePlace): boolean {
  return kind !== "file" && kind !== "test-pattern";
}

/** The source of a standby: thrown away while another is on air, given out while we are, as often as that changes. */
export class StandbyInput {
  readonly #open: () => LiveInput;
  readonly #isWarm: boolean;
  #input: LiveInput | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** What is being read, until somebody has taken it. */
  #reading: Promise<Packets> | undefined;
  #isIdle = true;
  #isDraining = false;
  #isOver = false;
  #failure: { readonly reason: unknown } | undefined;
  #isClosed = false;

  /** `open` opens the source; once where it is kept warm, else each time that it is wanted. */
  constructor(open: () => LiveInput, isWarm: boolean) {
    this.#open = open;
    this.#isWarm = isWarm;
  }

  /** What is known of it; undefined where it is not open. */
  get facts(): LiveInput["facts"] | undefined {
    return this.#input?.facts;
  }

  get isWarm(): boolean {
    return this.#isWarm;
  }

  /** It has ended while it was not wanted. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Why it cannot go on, where it broke while it was not wanted. */
  get failure(): { readonly reason: unknown } | undefined {
    return this.#failure;
  }

  /** Reads what comes, and throws it away. */
  idle(): void {
    this.#isIdle = true;
    if (!this.#isWarm || this.#isClosed) return;
    this.#input ??= this.#open();
    this.#reader ??= this.#input.packets().getReader();
    if (!this.#isDraining) void this.#drain();
  }

  /** Gives out what comes from now on, until its reader cancels. */
  use(): LiveInput {
    if (!this.#isWarm) {
      this.#input = this.#open();
      return this.#input;
    }
    this.idle();
    this.#isIdle = false;
    let isCancelled = false;
    const packets = () =>
      new ReadableStream<Uint8Array>(
        {
          pull: async (controller) => {
            const { done, value } = await this.#read();
            if (isCancelled) return;
            this.#reading = undefined;
            if (done || value === undefined) controller.close();
            else controller.enqueue(value);
          },
          cancel: () => {
            isCancelled = true;
            this.idle();
          },
        },
        { highWaterMark: 0 },
      );
    return { facts: this.#input!.facts, packets };
  }

  /** Lets it go for good. */
  close(): void {
    this.#isClosed = true;
    this.#isIdle = false;
    this.#reading?.catch(() => {}); // Nobody waits for it any more.
    this.#reader?.cancel().catch(() => {}); // It is given up either way.
  }

  #read(): Promise<Packets> {
    this.#reading ??= this.#reader!.read();
    return this.#reading;
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    try {
      while (this.#isIdle && !this.#isOver) {
        const { done } = await this.#read();
        // What came is for whoever wants it now.
        if (!this.#isIdle) return;
        this.#reading = undefined;
        this.#isOver = done;
      }
    } catch (reason) {
      if (this.#isIdle) this.#failure = { reason };
    } finally {
      this.#isDraining = false;
    }
  }
}
