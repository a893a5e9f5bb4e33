import type { BufferPool } from "./buffer-pool.ts";

/** Memory of the frames of one batch. The last stage that uses the batch returns it to the pool. */
export class OwnedMemory {
  readonly #pool: BufferPool;
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  #users = 0;

  constructor(pool: BufferPool) {
    this.#pool = pool;
  }

  /** Registers bytes that no other code references, and returns them. */
  own(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#parts.push(bytes);
    return bytes;
  }

  /** Returns `length` bytes of its own, with any content. */
  take(length: number): Uint8Array<ArrayBuffer> {
    return this.own(this.#pool.take(length));
  }

  /** Counts frames that are in this memory. */
  use(count: number): void {
    this.#users += count;
  }

  /** Returns the memory when it was called for each frame. No view of it may be used afterwards. */
  release(): void {
    if (--this.#users > 0) return;
    for (const bytes of this.#parts.splice(0)) this.#pool.give(bytes);
  }
}
