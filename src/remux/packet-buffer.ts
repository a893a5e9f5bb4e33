/** Bytes that come at the end and go at the front, in one run. It grows as needed; its owner bounds what it holds. */
export class PacketBuffer {
  #bytes = new Uint8Array(64 * 1024);
  length = 0;

  /** All that is held: a view, valid until the next `push` or `drop`. */
  get packets(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  /** Adds a copy of `packets`. */
  push(packets: Uint8Array): void {
    if (this.length + packets.length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.length + packets.length));
      larger.set(this.packets);
      this.#bytes = larger;
    }
    this.#bytes.set(packets, this.length);
    this.length += packets.length;
  }

  /** Lets the first `count` bytes go. */
  drop(count: number): void {
    this.#bytes.copyWithin(0, count, this.length);
    this.length -= count;
  }
}
