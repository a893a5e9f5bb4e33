import { equalBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** Initial capacity: the longest part of a handshake is a key, or the longest padding and its end mark. */
const FIRST_CAPACITY_BYTES = 1024;

/** Handshake bytes received but not read yet. */
export class MseInbox {
  #bytes = new Uint8Array(FIRST_CAPACITY_BYTES);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Appends a copy of received bytes. */
  add(bytes: Uint8Array): void {
    const length = this.length + bytes.length;
    if (this.#end + bytes.length > this.#bytes.length) {
      const target = length > this.#bytes.length ? new Uint8Array(2 * length) : this.#bytes;
      target.set(this.#bytes.subarray(this.#start, this.#end));
      this.#bytes = target;
      this.#start = 0;
      this.#end = length - bytes.length;
    }
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** Returns a copy of the next `count` bytes and removes them; undefined if they have not arrived. */
  take(count: number): Uint8Array | undefined {
    if (this.length < count) return undefined;
    this.#start += count;
    return this.#bytes.slice(this.#start - count, this.#start);
  }

  /** Returns and removes all bytes. */
  rest(): Uint8Array {
    return this.take(this.length)!;
  }

  /**
   * Skips padding up to the end of `mark`; returns false if it has not arrived. Throws `DecodeError` if more than
   * `padding.left` bytes precede it. Each byte is examined once, regardless of how the bytes are split.
   */
  skipPast(mark: Uint8Array, padding: { left: number }): boolean {
    while (this.length >= mark.length) {
      const head = this.#bytes.subarray(this.#start, this.#start + mark.length);
      if (equalBytes(head, mark)) {
        this.#start += mark.length;
        return true;
      }
      if (padding.left-- === 0) throw new DecodeError("MSE", this.#start, "padding without end mark");
      this.#start++;
    }
    return false;
  }
}
