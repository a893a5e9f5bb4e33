import type { Clock } from "../runtime/contract.ts";
import { orLater } from "./guarded-stream.ts";
import { type ChunkReader, KEEP_ALIVE_MS, nullPackets } from "./ts-stream.ts";

/** Reads what is still being opened: null packets until it is known what that is. */
export class OpeningReader implements ChunkReader {
  readonly #clock: Clock;
  readonly #opened: Promise<unknown>;
  readonly #make: () => Promise<ChunkReader>;
  readonly #closed: () => void;
  #reader: ChunkReader | undefined;
  #isClosed = false;

  /** `make` is called once, when `opened` has resolved; `closed` once, when nobody will read any more. */
  constructor(clock: Clock, opened: Promise<unknown>, make: () => Promise<ChunkReader>, closed: () => void) {
    this.#clock = clock;
    this.#opened = opened;
    this.#make = make;
    this.#closed = closed;
  }

  async next(): Promise<Uint8Array | undefined> {
    if (!this.#reader) {
      if (!(await orLater(this.#opened, this.#clock, KEEP_ALIVE_MS))) return nullPackets();
      const reader = await this.#make();
      if (this.#isClosed) reader.close();
      this.#reader = reader;
    }
    return this.#reader.next();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#reader?.close();
    this.#closed();
  }
}
