/**
 * Memory of the frames of one batch. A stream makes megabytes of garbage a second, which the garbage collector frees late, so the
 * last stage that uses a batch frees it.
 */
export class OwnedMemory {
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];
  #users = 0;

  /** Registers bytes that no other code references, and returns them. */
  own(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#parts.push(bytes);
    return bytes;
  }

  /** Counts frames that are in this memory. */
  use(count: number): void {
    this.#users += count;
  }

  /** Frees the memory when it was called for each frame; every view of it is empty afterwards. */
  release(): void {
    if (--this.#users > 0) return;
    for (const bytes of this.#parts.splice(0)) freeBytes(bytes);
  }
}

/** Frees bytes that no other code references, if the runtime supports it. */
export function freeBytes({ buffer, byteLength }: Uint8Array<ArrayBuffer>): void {
  // A view of a larger buffer can be shared. Node has `ArrayBuffer.transfer` (ES2024) from version 21.
  if (buffer.byteLength === byteLength && typeof buffer.transfer === "function") buffer.transfer(0);
}
