import type { SequentialReader } from "../base/byte-source.ts";
import { SluiceError } from "../base/errors.ts";
import type { Demand, Reader } from "./demand.ts";
import { type WaitEnd, waitForPiece } from "./wait-for-piece.ts";

/** A read within this distance of a lane's position continues the lane. */
const NEAR_BYTES = 1024 * 1024;
/** Tracks that are stored far from each other are read in turns, each in a lane of its own. */
const MAX_LANES = 4;
/** A lane that so many other reads have followed was left by a jump: 8 MiB of chunks. */
const STALE_READS = 32;

/** One position, and its window. */
interface Lane {
  readonly reader: Reader;
  position: number;
  /** Number of the last read. */
  lastRead: number;
}

/**
 * Reads one file at increasing positions, of one or of a few parts of it in turns. It copies out of the pieces, so that their memory
 * can be reused.
 */
export class SequenceReader implements SequentialReader {
  readonly #demand: Demand;
  readonly #fileEnd: number;
  #lanes: Lane[] = [];
  #reads = 0;
  /** Position of the file in the whole content. */
  readonly #offset: number;
  readonly #closed = new AbortController();
  readonly #end: WaitEnd;

  /** `stopped` fires with its reason when the transfer stops. */
  constructor(demand: Demand, file: { offset: number; size: number }, stopped: AbortSignal) {
    this.#demand = demand;
    this.#offset = file.offset;
    this.#fileEnd = file.offset + file.size;
    this.#end = { signal: this.#closed.signal, stopped };
  }

  read(position: number, into: Uint8Array, readAheadBytes: number): Promise<void> | undefined {
    if (this.#closed.signal.aborted) return Promise.reject(this.#closed.signal.reason);
    const start = this.#offset + position;
    const { reader } = this.#laneOf(start, into.length);
    const filled = this.#fill(reader, start, into, 0, readAheadBytes);
    return filled === into.length ? undefined : this.#wait(reader, start, into, filled, readAheadBytes);
  }

  close(reason: unknown = new SluiceError("cancelled", "the reader was closed")): void {
    for (const { reader } of this.#lanes.splice(0)) reader.close();
    this.#closed.abort(reason);
  }

  /** Returns the lane that a read at `start` continues, or a new one. Closes lanes that are not used any more. */
  #laneOf(start: number, length: number): Lane {
    this.#reads++;
    let lane = this.#lanes.find(({ position }) => Math.abs(start - position) <= NEAR_BYTES);
    this.#lanes = this.#lanes.filter((other) => {
      const isUsed = other === lane || this.#reads - other.lastRead <= STALE_READS;
      if (!isUsed) other.reader.close();
      return isUsed;
    });
    if (!lane) {
      this.#lanes.sort((a, b) => a.lastRead - b.lastRead);
      if (this.#lanes.length === MAX_LANES) this.#lanes.shift()!.reader.close();
      lane = { reader: this.#demand.reader(this.#fileEnd), position: start, lastRead: this.#reads };
      this.#lanes.push(lane);
    }
    lane.position = start + length;
    lane.lastRead = this.#reads;
    return lane;
  }

  /** Copies pieces as far as they are in memory. Returns how many bytes of `into` are filled, `filled` of them before. */
  #fill(reader: Reader, start: number, into: Uint8Array, filled: number, readAheadBytes: number): number {
    const { store } = this.#demand;
    let length = filled;
    while (length < into.length) {
      const missing = into.length - length;
      reader.moveTo(start + length, missing + readAheadBytes, missing);
      const piece = store.peek(this.#pieceAt(start + length));
      if (!piece) break;
      length += this.#copy(piece, start + length, into, length);
    }
    return length;
  }

  async #wait(
    reader: Reader,
    start: number,
    into: Uint8Array,
    filled: number,
    readAheadBytes: number,
  ): Promise<void> {
    for (let length = filled; length < into.length; ) {
      const at = start + length;
      const piece = await waitForPiece(this.#demand.store, this.#pieceAt(at), this.#end);
      length += this.#copy(piece, at, into, length);
      length = this.#fill(reader, start, into, length, readAheadBytes);
    }
  }

  #pieceAt(position: number): number {
    return Math.floor(position / this.#demand.store.layout.pieceLength);
  }

  /** Copies the part of `piece` from `position` on to offset `to` of `into`; returns its length. */
  #copy(piece: Uint8Array, position: number, into: Uint8Array, to: number): number {
    const from = position % this.#demand.store.layout.pieceLength;
    const length = Math.min(piece.length - from, into.length - to);
    into.set(piece.subarray(from, from + length), to);
    return length;
  }
}
