import type { ReadOptions } from "../base/byte-source.ts";
import { type ByteRange, rangeLength } from "../base/range.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Demand, Reader } from "./demand.ts";
import { type WaitEnd, waitForPiece } from "./piece-cursor.ts";

/** A lane keeps its window so long after its last read: a demuxer comes back at once, a paused player does not. */
const LINGER_MS = 10_000;
/** Places in one file that are read on at the same time; more come and go without read-ahead. */
const MAX_LANES = 8;
/** A read so far behind or ahead of where a lane stands still goes on with it (demuxers skip what they do not need). */
const NEAR_BYTES = 1024 * 1024;
/** Read-ahead after the second read of a lane; it doubles with each further one. */
const FIRST_AHEAD_BYTES = 512 * 1024;
const MAX_AHEAD_BYTES = 16 * 1024 * 1024;

/** One place where somebody reads on, read by read. */
interface Lane {
  readonly reader: Reader;
  position: number;
  aheadBytes: number;
  isBusy: boolean;
  lastRead: number;
}

/**
 * Reading at random places of one file. A read that goes on where another ended belongs to the same lane, and a lane
 * that goes on reads ahead, more with each read; so a demuxer that asks in small steps keeps the swarm busy, and one
 * that jumps about for an index fetches nothing but what it asks for.
 */
export class ReadLanes {
  readonly #demand: Demand;
  readonly #clock: Clock;
  readonly #end: number;
  readonly #lanes: Lane[] = [];
  #cancelTimer: (() => void) | undefined;

  /** `end` is the end of the file in the whole content. */
  constructor(demand: Demand, clock: Clock, end: number) {
    this.#demand = demand;
    this.#clock = clock;
    this.#end = end;
  }

  /** Exactly the bytes of `range` (of the whole content), waited for. */
  async read(range: ByteRange, options: ReadOptions, end: WaitEnd): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(rangeLength(range));
    if (this.#copyFromMemory(range, bytes) && options.readAheadBytes === 0) return bytes;
    const lane = this.#lane(range);
    lane.isBusy = true;
    try {
      const aheadBytes = Math.min(lane.aheadBytes, options.readAheadBytes ?? lane.aheadBytes);
      await this.#fill(range, bytes, lane, aheadBytes, end);
      return bytes;
    } finally {
      this.#leave(lane, range.end);
    }
  }

  /** Ends all read-ahead. */
  close(): void {
    this.#cancelTimer?.();
    for (const lane of this.#lanes.splice(0)) lane.reader.close();
  }

  #copyFromMemory(range: ByteRange, into: Uint8Array): boolean {
    const { pieceLength } = this.#demand.store.layout;
    for (let at = range.start; at < range.end; ) {
      const piece = Math.floor(at / pieceLength);
      const view = this.#demand.store.peek(piece);
      if (view === undefined) return false;
      at += copyPart(view, at - piece * pieceLength, into, at - range.start);
    }
    return true;
  }

  async #fill(
    range: ByteRange,
    into: Uint8Array,
    lane: Lane,
    aheadBytes: number,
    end: WaitEnd,
  ): Promise<void> {
    const { store } = this.#demand;
    const { pieceLength } = store.layout;
    for (let at = range.start; at < range.end; ) {
      lane.reader.moveTo(at, range.end - at + aheadBytes, range.end - at);
      const piece = Math.floor(at / pieceLength);
      const view = store.peek(piece) ?? (await waitForPiece(store, piece, end));
      at += copyPart(view, at - piece * pieceLength, into, at - range.start);
    }
  }

  #lane(range: ByteRange): Lane {
    const near = this.#lanes.find(
      ({ isBusy, position }) => !isBusy && Math.abs(range.start - position) <= NEAR_BYTES,
    );
    if (near) {
      near.aheadBytes = Math.min(MAX_AHEAD_BYTES, Math.max(FIRST_AHEAD_BYTES, 2 * near.aheadBytes));
      return near;
    }
    const lane: Lane = {
      reader: this.#demand.reader(this.#end),
      position: range.start,
      aheadBytes: 0,
      isBusy: true,
      lastRead: this.#clock.now(),
    };
    if (this.#lanes.length >= MAX_LANES) this.#dropIdlest();
    if (this.#lanes.length < MAX_LANES) this.#lanes.push(lane);
    return lane;
  }

  #leave(lane: Lane, position: number): void {
    lane.isBusy = false;
    lane.position = position;
    lane.lastRead = this.#clock.now();
    if (!this.#lanes.includes(lane)) {
      lane.reader.close();
      return;
    }
    // Nothing but the read-ahead is wanted now, and none of it at once.
    lane.reader.moveTo(position, lane.aheadBytes, 0);
    this.#cancelTimer ??= this.#clock.at(after(this.#clock.now(), LINGER_MS), () => this.#sweep());
  }

  #dropIdlest(): void {
    const idle = this.#lanes.filter((lane) => !lane.isBusy);
    const [oldest] = idle.sort((a, b) => a.lastRead - b.lastRead);
    if (oldest) this.#remove(oldest);
  }

  #sweep(): void {
    this.#cancelTimer = undefined;
    const until = this.#clock.now() - LINGER_MS;
    for (const lane of [...this.#lanes]) if (!lane.isBusy && lane.lastRead <= until) this.#remove(lane);
    if (this.#lanes.length === 0) return;
    this.#cancelTimer = this.#clock.at(after(this.#clock.now(), LINGER_MS), () => this.#sweep());
  }

  #remove(lane: Lane): void {
    lane.reader.close();
    this.#lanes.splice(this.#lanes.indexOf(lane), 1);
  }
}

/** Copies as much of a piece from `from` on as fits; returns how much. */
function copyPart(piece: Uint8Array, from: number, into: Uint8Array, at: number): number {
  const length = Math.min(piece.length - from, into.length - at);
  into.set(piece.subarray(from, from + length), at);
  return length;
}
