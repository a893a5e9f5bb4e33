/**
 * Bytes that nobody else holds. A segment is megabytes, and two kinds of garbage come with each: what was read for it, and what was
 * made of it. The collector is in no hurry with either, so what was read is given back by hand.
 */
export class OwnedMemory {
  readonly #parts: Uint8Array<ArrayBuffer>[] = [];

  /** Takes note of bytes that are this one's own, and returns them. */
  own(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#parts.push(bytes);
    return bytes;
  }

  /** Frees them at once, where the runtime can; every view of them is empty afterwards. */
  free(): void {
    for (const { buffer, byteLength } of this.#parts.splice(0)) {
      // A part of something larger may be shared after all (ES2024: Node has `transfer` from version 21 on).
      if (buffer.byteLength === byteLength && typeof buffer.transfer === "function") buffer.transfer(0);
    }
  }
}
