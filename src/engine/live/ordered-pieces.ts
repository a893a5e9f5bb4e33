import type { PieceHeader } from "../../wire/live-header.ts";
import type { PieceSink } from "./contract.ts";

/**
 * Makes of what the swarm gives out what a sink may rely on: each number once, in order, and a word where a life of the
 * source ends or numbers are left out. The swarm itself may begin again at another place.
 */
export class OrderedPieces {
  readonly #sink: PieceSink;
  #epoch: number | undefined;
  #nextSeq = 0;

  constructor(sink: PieceSink) {
    this.#sink = sink;
  }

  piece(header: PieceHeader, chunks: readonly Uint8Array[]): void {
    const { epoch, seq } = header;
    const isFirst = epoch !== this.#epoch;
    if (isFirst && this.#epoch !== undefined) this.#sink.restarted();
    this.#epoch = epoch;
    if (!isFirst && seq < this.#nextSeq) return;
    // One word for all of them: there may be thousands after a long outage.
    if (!isFirst && seq > this.#nextSeq) this.#sink.skip(seq - 1);
    this.#nextSeq = seq + 1;
    this.#sink.piece(header, chunks);
  }

  /** Before the first piece nothing can be missing. */
  skip(seq: number): void {
    if (this.#epoch === undefined || seq < this.#nextSeq) return;
    this.#nextSeq = seq + 1;
    this.#sink.skip(seq);
  }
}
