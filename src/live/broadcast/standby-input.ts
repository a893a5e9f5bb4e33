import type { LiveInput } from "../input/source.ts";
import type { LivePlace } from "../input/source-place.ts";

type Packets = { readonly done: boolean; readonly value?: Uint8Array | undefined };

/** Whether a standby keeps this kind of source open. Streams are: reopening takes time, a pipe would block its writer,
 * and the standby must know whether data arrives. A file can be opened at any time. */
export function isKeptOpen({ kind }: LivePlace): boolean {
  return kind !== "file" && kind !== "test-pattern";
}

/** The source of a standby: discarded while another source is on air, delivered while this one is. */
export class StandbyInput {
  readonly #open: () => LiveInput;
  readonly #isKeptOpen: boolean;
  #input: LiveInput | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** The pending read, until its result is used. */
  #reading: Promise<Packets> | undefined;
  #isDiscarding = true;
  #isDraining = false;
  #hasEnded = false;
  #failure: { readonly reason: unknown } | undefined;
  #isClosed = false;

  /** `open` opens the source: once if it is kept open, otherwise for each use. */
  constructor(open: () => LiveInput, isKeptOpen: boolean) {
    this.#open = open;
    this.#isKeptOpen = isKeptOpen;
  }

  /** The facts of the source; undefined while it is closed. */
  get facts(): LiveInput["facts"] | undefined {
    return this.#input?.facts;
  }

  get isKeptOpen(): boolean {
    return this.#isKeptOpen;
  }

  /** The source ended while it was discarded. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The error of the source while it was discarded. */
  get failure(): { readonly reason: unknown } | undefined {
    return this.#failure;
  }

  /** Reads and discards packets. */
  discard(): void {
    this.#isDiscarding = true;
    if (!this.#isKeptOpen || this.#isClosed) return;
    this.#input ??= this.#open();
    this.#reader ??= this.#input.packets().getReader();
    if (!this.#isDraining) void this.#drain();
  }

  /** Delivers the packets from now on, until the reader cancels. */
  use(): LiveInput {
    if (!this.#isKeptOpen) {
      this.#input = this.#open();
      return this.#input;
    }
    this.discard();
    this.#isDiscarding = false;
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
            this.discard();
          },
        },
        { highWaterMark: 0 },
      );
    return { facts: this.#input!.facts, packets };
  }

  /** Closes the source permanently. */
  close(): void {
    this.#isClosed = true;
    this.#isDiscarding = false;
    this.#reading?.catch(() => {}); // The result is no longer needed.
    this.#reader?.cancel().catch(() => {}); // The source is discarded anyway.
  }

  #read(): Promise<Packets> {
    this.#reading ??= this.#reader!.read();
    return this.#reading;
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    try {
      while (this.#isDiscarding && !this.#hasEnded) {
        const { done } = await this.#read();
        // The new reader gets these packets.
        if (!this.#isDiscarding) return;
        this.#reading = undefined;
        this.#hasEnded = done;
      }
    } catch (reason) {
      if (this.#isDiscarding) this.#failure = { reason };
    } finally {
      this.#isDraining = false;
    }
  }
}
