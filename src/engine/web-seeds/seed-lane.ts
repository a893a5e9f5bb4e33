import type { ByteRange } from "../../base/range.ts";
import { fetchFault, SeedFault } from "./seed-fault.ts";
import type { SeedMap } from "./seed-map.ts";
import type { SeedAnswer, SeedSource } from "./seed-source.ts";

/** A block that the swarm waits for, by its place in the content. */
export interface SeedBlock extends ByteRange {
  readonly piece: number;
  readonly begin: number;
}

/** What a lane tells. */
interface LaneHooks {
  /** A block is whole; `bytes` are valid only during the call. */
  arrived(block: SeedBlock, bytes: Uint8Array): void;
  /** Nothing is wanted of it any more. */
  rested(lane: SeedLane): void;
  /** It cannot go on; the blocks it was to bring are still its own. */
  failed(lane: SeedLane, thrown: unknown): void;
}

/** Bytes that are read and thrown away rather than to ask anew: what a connection brings in the time that takes. */
const SKIP_BYTES = 256 * 1024;
/** Going on, four times as much is asked for each time, up to this. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Padding is given in parts of this size. */
const ZEROS = new Uint8Array(16 * 1024);

/**
 * One connection to a web seed that goes through the content in order. Blocks that lie ahead of it within reach are filled as
 * it passes; it is paused while it has none, and goes elsewhere when the next one lies elsewhere.
 */
export class SeedLane {
  readonly #source: SeedSource;
  readonly #map: SeedMap;
  readonly #hooks: LaneHooks;
  readonly #closed = new AbortController();
  /** By place in the content; only of the first some bytes may be there. */
  readonly #blocks: SeedBlock[] = [];
  #filling: SeedBlock | undefined;
  #filled = 0;
  #place: Uint8Array<ArrayBuffer> | undefined;
  /** Where the next byte lies, and what has come already from there on. */
  #position = 0;
  #rest: Uint8Array | undefined;
  #answer: SeedAnswer | undefined;
  #nextBytes = 0;
  #isRunning = false;
  /** Bytes have come since it last asked. */
  #hasProgress = false;

  constructor(source: SeedSource, map: SeedMap, hooks: LaneHooks) {
    this.#source = source;
    this.#map = map;
    this.#hooks = hooks;
  }

  get isIdle(): boolean {
    return this.#blocks.length === 0;
  }

  /** How many bytes it would have to skip to this place; undefined where it does not pass there soon. */
  gapTo(start: number): number | undefined {
    if (this.isIdle && !this.#answer) return undefined;
    const last = this.#blocks[this.#blocks.length - 1]?.end ?? this.#position;
    if (start < this.#position || start > last + SKIP_BYTES) return undefined;
    return Math.max(0, start - last);
  }

  /** Takes on a block. */
  add(block: SeedBlock): void {
    let at = this.#blocks.length;
    while (at > 0 && this.#blocks[at - 1]!.start > block.start) at--;
    // What is half there is finished first.
    if (at === 0 && this.#filling && this.#filling === this.#blocks[0]) at = 1;
    this.#blocks.splice(at, 0, block);
    if (!this.#isRunning) this.#begin();
  }

  /** Gives a block up; false where it is not one of its own. */
  remove(block: SeedBlock): boolean {
    const at = this.#blocks.indexOf(block);
    if (at < 0) return false;
    this.#blocks.splice(at, 1);
    return true;
  }

  /** Gives up all blocks. */
  takeAll(): SeedBlock[] {
    return this.#blocks.splice(0);
  }

  close(): void {
    this.#closed.abort(new SeedFault("later", "nobody reads here any more"));
    this.#disconnect();
  }

  #begin(): void {
    this.#isRunning = true;
    this.#run().then(
      () => {
        this.#isRunning = false;
        if (this.#closed.signal.aborted) return;
        // A block may have been added since the last one went out.
        if (this.isIdle) this.#hooks.rested(this);
        else this.#begin();
      },
      (thrown) => {
        this.#isRunning = false;
        if (!this.#closed.signal.aborted) this.#hooks.failed(this, thrown);
      },
    );
  }

  async #run(): Promise<void> {
    // Whoever asked goes on asking first: then it is known how much is wanted.
    await Promise.resolve();
    for (let block = this.#blocks[0]; block; block = this.#blocks[0]) {
      if (block !== this.#filling) this.#approach(block);
      const bytes = await this.#more();
      this.#closed.signal.throwIfAborted();
      if (bytes) this.#take(bytes);
    }
  }

  /** Goes to a block: onwards where it is near, with a new question where not. */
  #approach({ start }: SeedBlock): void {
    this.#filling = undefined;
    this.#filled = 0;
    const gap = start - this.#position;
    if (this.#answer && gap >= 0 && gap <= SKIP_BYTES && start < this.#answer.end) return;
    if (gap === 0) return;
    if (this.#answer && this.#position < this.#answer.end) this.#source.brokeOff();
    this.#disconnect();
    this.#nextBytes = 0;
    this.#position = start;
  }

  /** The bytes from the position on, some of them; undefined where there are none yet. */
  async #more(): Promise<Uint8Array | undefined> {
    if (this.#rest) return this.#rest;
    const stretch = this.#map.at(this.#position);
    if (stretch.kind === "zeros") return ZEROS.subarray(0, stretch.end - this.#position);
    try {
      if (this.#answer && this.#position >= this.#answer.end) {
        this.#source.wentThrough();
        this.#disconnect();
      }
      this.#answer ??= await this.#ask();
      const { done, value } = await this.#answer.reader.read();
      if (done) throw new SeedFault("later", "the server ended its answer before its end");
      this.#hasProgress = true;
      return value.subarray(0, this.#answer.end - this.#position);
    } catch (thrown) {
      this.#disconnect();
      const fault = fetchFault(thrown);
      const fate = fault instanceof SeedFault ? fault.fate : undefined;
      if (fate === "missing" && stretch.kind === "file") this.#map.lacks(stretch.fileIndex);
      if (this.#closed.signal.aborted || !this.#hasProgress || fate !== "later") throw fault;
      // A connection that has brought something is made again at once, from where it broke.
      this.#hasProgress = false;
      return undefined;
    }
  }

  #ask(): Promise<SeedAnswer> {
    const stretch = this.#map.at(this.#position);
    const reach = this.#blocks[this.#blocks.length - 1]?.end ?? this.#position;
    const bytes = this.#nextBytes === 0 ? this.#source.firstBytes : this.#nextBytes;
    const end = Math.min(stretch.end, Math.max(this.#position + bytes, reach));
    this.#nextBytes = Math.min(MAX_BYTES, 4 * bytes);
    return this.#source.open(stretch, this.#position, end, this.#closed.signal);
  }

  /** Hands out what came, block by block; what nobody waits for yet is kept where it is. */
  #take(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const block = this.#blocks[0];
      if (!block) break;
      if (block !== this.#filling) {
        const gap = block.start - this.#position;
        // It lies behind, or too far ahead of what is here: the next turn goes there.
        if (gap < 0 || gap >= bytes.length - at + SKIP_BYTES) break;
        const skipped = Math.min(gap, bytes.length - at);
        at += skipped;
        this.#position += skipped;
        if (at === bytes.length) break;
        this.#filling = block;
        this.#filled = 0;
      }
      at += this.#fill(block, bytes.subarray(at));
    }
    this.#rest = at < bytes.length ? bytes.subarray(at) : undefined;
  }

  #fill(block: SeedBlock, bytes: Uint8Array): number {
    const length = block.end - block.start;
    if (!this.#place || this.#place.length < length) this.#place = new Uint8Array(length);
    const part = bytes.subarray(0, length - this.#filled);
    this.#place.set(part, this.#filled);
    this.#filled += part.length;
    this.#position += part.length;
    if (this.#filled === length) {
      this.#blocks.shift();
      this.#filling = undefined;
      this.#filled = 0;
      this.#hooks.arrived(block, this.#place.subarray(0, length));
    }
    return part.length;
  }

  #disconnect(): void {
    this.#answer?.close();
    this.#answer = undefined;
    this.#rest = undefined;
  }
}
