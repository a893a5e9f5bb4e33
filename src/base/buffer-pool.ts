/** All buffers have one size, so that each fits any use: a chunk of 256 KiB and the rest of the one before it. */
const BUFFER_BYTES = 384 * 1024;
/** Less is not worth a buffer. */
const MIN_BYTES = 64 * 1024;
/** Unused buffers of one file, for all its players: as many as the stages of one player use at once. */
const MAX_FREE = 8;

/**
 * Buffers that are used again. A stream makes megabytes of garbage a second: new memory costs page faults, and the garbage collector
 * frees it late.
 */
export class BufferPool {
  readonly #free: ArrayBuffer[] = [];

  /** Returns `length` bytes with any content. */
  take(length: number): Uint8Array<ArrayBuffer> {
    if (length > BUFFER_BYTES || length < MIN_BYTES) return new Uint8Array(length);
    return new Uint8Array(this.#free.pop() ?? new ArrayBuffer(BUFFER_BYTES), 0, length);
  }

  /** Takes back what {@link take} returned, or a part of it, once. Nothing else refers to that buffer any more. */
  give({ buffer }: Uint8Array): void {
    if (buffer.byteLength < MIN_BYTES || !(buffer instanceof ArrayBuffer)) return;
    if (buffer.byteLength === BUFFER_BYTES && this.#free.length < MAX_FREE) this.#free.push(buffer);
    // Frees the memory now. Node has `ArrayBuffer.transfer` (ES2024) from version 21.
    else if (typeof buffer.transfer === "function") buffer.transfer(0);
  }
}
