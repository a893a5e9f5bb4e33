import type { ReadOptions } from "../base/byte-source.ts";
import { type ByteRange, rangeLength } from "../base/range.ts";
import { after } from "../base/time.ts";
import type { Clock } from "../runtime/contract.ts";
import type { Demand, Reader } from "./demand.ts";
import { type WaitEnd, waitForPiece } from "./wait-for-piece.ts";

/** A lane keeps its window for this time after its last read: a demuxer continues at once, a paused player does not. */
const LINGER_MS = 10_000;
/** Lanes of one file; reads beyond them get no read-ahead. */
const MAX_LANES = 8;
/** A read within this distance of a lane's position continues the lane, because demuxers skip data that they do not need. */
const NEAR_BYTES = 1024 * 1024;
/** Read-ahead after the second read of a lane; it doubles with each further one. */
const FIRST_AHEAD_BYTES = 512 * 1024;
const MAX_AHEAD_BYTES = 16 * 1024 * 1024;

/** A sequence of consecutive reads. */
interface Lane {
  readonly reader: Reader;
  position: number;
  aheadBytes: number;
  isBusy: boolean;
  lastRead: number;
}

/**
 * Serves reads at arbitrary positions of one file. A read near the end of an earlier one belongs to the same lane, and each
 * further read of a lane doubles its read-ahead. So a demuxer that reads in small steps keeps the swarm busy, and one that
 * seeks for an index fetches nothing else.
 */
export class ReadLanes {
  readonly #demand: Demand;
  readonly #clock: Clock;
  readonly #end: number;
  readonly #lanes: Lane[] = [];
  #cancelTimer: (() => void) | undefined;

  /** `end`: end of the file in the whole content. */
  constructor(demand: Demand, clock: Clock, end: number) {
    this.#demand = demand;
    this.#clock = clock;
    this.#end = end;
  }

  /** Waits for the bytes of `range` (of the whole content). */
  async read(range: ByteRange, options: ReadOptions, end: WaitEnd): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(rangeLength(range));
    const lane = this.#lane(range);
    lane.isBusy = true;
    try {
      // A caller that knows what it reads next needs no estimate.
      lane.aheadBytes = options.readAheadBytes ?? lane.aheadBytes;
      await this.#fill(range, bytes, lane, lane.aheadBytes, end);
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
    if (this.#lanes.length >= MAX_LANES) this.#dropLongestIdle();
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
    // Only the read-ahead is wanted now, and none of it is urgent.
    lane.reader.moveTo(position, lane.aheadBytes, 0);
    this.#cancelTimer ??= this.#clock.at(after(this.#clock.now(), LINGER_MS), () => this.#removeIdle());
  }

  #dropLongestIdle(): void {
    const idle = this.#lanes.filter((lane) => !lane.isBusy);
    const [oldest] = idle.sort((a, b) => a.lastRead - b.lastRead);
    if (oldest) this.#remove(oldest);
  }

  #removeIdle(): void {
    this.#cancelTimer = undefined;
    const until = this.#clock.now() - LINGER_MS;
    for (const lane of [...this.#lanes]) if (!lane.isBusy && lane.lastRead <= until) this.#remove(lane);
    if (this.#lanes.length === 0) return;
    this.#cancelTimer = this.#clock.at(after(this.#clock.now(), LINGER_MS), () => this.#removeIdle());
  }

  #remove(lane: Lane): void {
    lane.reader.close();
    this.#lanes.splice(this.#lanes.indexOf(lane), 1);
  }
}

/** Copies as many bytes of a piece from `from` on as fit; returns their number. */
function copyPart(piece: Uint8Array, from: number, into: Uint8Array, at: number): number {
  const length = Math.min(piece.length - from, into.length - at);
  into.set(piece.subarray(from, from + length), at);
  return length;
}
