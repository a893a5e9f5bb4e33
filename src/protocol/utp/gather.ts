import type { UtpId, UtpOutput } from "./contract.ts";

/** Most peers send 40 packets or fewer between two turns of the event loop. */
const BUFFER_BYTES = 64 * 1024;

/**
 * Joins the received bytes of consecutive packets of one connection: parsing a peer's messages costs more per call than
 * copying a packet.
 */
export class Gather {
  readonly #emit: (output: UtpOutput) => void;
  #buffer = new Uint8Array(BUFFER_BYTES);
  #id: UtpId = 0;
  /** The range of `#buffer` that is not emitted yet. */
  #from = 0;
  #to = 0;

  constructor(emit: (output: UtpOutput) => void) {
    this.#emit = emit;
  }

  /** Copies received bytes of a connection. */
  add(id: UtpId, bytes: Uint8Array): void {
    if (id !== this.#id || this.#to + bytes.length > this.#buffer.length) this.flush();
    if (this.#to + bytes.length > this.#buffer.length) {
      this.#buffer = new Uint8Array(Math.max(BUFFER_BYTES, bytes.length));
      this.#from = this.#to = 0;
    }
    this.#id = id;
    this.#buffer.set(bytes, this.#to);
    this.#to += bytes.length;
  }

  /** Emits the bytes added since the last call; they stay valid until `reset`. */
  flush(): void {
    if (this.#from === this.#to) return;
    const bytes = this.#buffer.subarray(this.#from, this.#to);
    this.#from = this.#to;
    this.#emit({ kind: "received", id: this.#id, bytes });
  }

  /** Reuses the buffer: everything emitted has been processed. */
  reset(): void {
    this.#from = this.#to = 0;
  }
}
