import { equalBytes } from "../../base/bytes.ts";
import { DecodeError } from "../../base/errors.ts";

/** No part of a handshake has more than this unread: a key, or the longest padding and what ends it. */
const FIRST_ROOM_BYTES = 1024;

/** What has come of a handshake and was not read yet. No handshake reads far: the bound is that of the longest one. */
export class MseInbox {
  #bytes = new Uint8Array(FIRST_ROOM_BYTES);
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Takes a copy of what came. */
  add(bytes: Uint8Array): void {
    const length = this.length + bytes.length;
    if (this.#end + bytes.length > this.#bytes.length) {
      const room = length > this.#bytes.length ? new Uint8Array(2 * length) : this.#bytes;
      room.set(this.#bytes.subarray(this.#start, this.#end));
      this.#bytes = room;
      this.#start = 0;
      this.#end = length - bytes.length;
    }
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** The next `count` bytes, the caller's own; undefined where they have not come yet. */
  take(count: number): Uint8Array | undefined {
    if (this.length < count) return undefined;
    this.#start += count;
    return this.#bytes.slice(this.#start - count, this.#start);
  }

  /** All that is left. */
  rest(): Uint8Array {
    return this.take(this.length)!;
  }

  /**
   * Reads up to the end of `mark`, before which there may be `most` bytes of padding; false where it has not come yet. Throws
   * `DecodeError` where it cannot come any more. A byte is looked at as a beginning once, however many parts it comes in.
   */
  skipPast(mark: Uint8Array, padding: { left: number }): boolean {
    while (this.length >= mark.length) {
      const head = this.#bytes.subarray(this.#start, this.#start + mark.length);
      if (equalBytes(head, mark)) {
        this.#start += mark.length;
        return true;
      }
      if (padding.left-- === 0) throw new DecodeError("MSE", this.#start, "no end of the padding");
      this.#start++;
    }
    return false;
  }
}
