import type { ByteRange } from "../../base/range.ts";
import { fetchFault, SeedFault } from "./seed-fault.ts";
import type { SeedLayout } from "./seed-map.ts";
import type { SeedResponse, SeedSource } from "./seed-source.ts";

/** A block that the swarm has requested, as a range of the content. */
export interface SeedBlock extends ByteRange {
  readonly piece: number;
  readonly begin: number;
}

/** Callbacks of a lane. */
interface LaneHooks {
  /** A block is complete; `bytes` are valid only during the call. */
  arrived(block: SeedBlock, bytes: Uint8Array): void;
  /** The lane has no blocks any more. */
  idle(lane: SeedLane): void;
  /** The lane has failed; it still has its blocks. */
  failed(lane: SeedLane, thrown: unknown): void;
}

/** A gap up to this size is read and discarded, because a new request would take longer. */
const SKIP_BYTES = 256 * 1024;
/** Each consecutive request is four times as large as the one before, up to this limit. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Padding is delivered in chunks of this size. */
const ZEROS = new Uint8Array(16 * 1024);

/**
 * Reads the content from one web seed in order, over one connection at a time. It fills the blocks that lie within reach ahead
 * of it, pauses while it has none, and makes a new request for a block elsewhere.
 */
export class SeedLane {
  readonly #source: SeedSource;
  readonly #map: SeedLayout;
  readonly #hooks: LaneHooks;
  readonly #closed = new AbortController();
  /** In the order of the content; only the first may be partially filled. */
  readonly #blocks: SeedBlock[] = [];
  #filling: SeedBlock | undefined;
  #filled = 0;
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  /** Position of the next byte, and bytes from there on that have been received already. */
  #position = 0;
  #rest: Uint8Array | undefined;
  #response: SeedResponse | undefined;
  #nextBytes = 0;
  #isRunning = false;
  /** True if bytes have been received since the last failure. */
  #hasProgress = false;

  constructor(source: SeedSource, map: SeedLayout, hooks: LaneHooks) {
    this.#source = source;
    this.#map = map;
    this.#hooks = hooks;
  }

  get isIdle(): boolean {
    return this.#blocks.length === 0;
  }

  /** Returns how many bytes the lane would skip to reach `start`; undefined if that is out of reach. */
  gapTo(start: number): number | undefined {
    if (this.isIdle && !this.#response) return undefined;
    const last = this.#blocks[this.#blocks.length - 1]?.end ?? this.#position;
    if (start < this.#position || start > last + SKIP_BYTES) return undefined;
    return Math.max(0, start - last);
  }

  /** Adds a block. */
  add(block: SeedBlock): void {
    let at = this.#blocks.length;
    while (at > 0 && this.#blocks[at - 1]!.start > block.start) at--;
    // A partially filled block is completed first.
    if (at === 0 && this.#filling && this.#filling === this.#blocks[0]) at = 1;
    this.#blocks.splice(at, 0, block);
    if (!this.#isRunning) this.#begin();
  }

  /** Removes a block; returns false if the lane does not have it. */
  remove(block: SeedBlock): boolean {
    const at = this.#blocks.indexOf(block);
    if (at < 0) return false;
    this.#blocks.splice(at, 1);
    return true;
  }

  /** Removes and returns all blocks. */
  takeAll(): SeedBlock[] {
    return this.#blocks.splice(0);
  }

  close(): void {
    this.#closed.abort(new SeedFault("later", "the lane was closed"));
    this.#disconnect();
  }

  #begin(): void {
    this.#isRunning = true;
    this.#run().then(
      () => {
        this.#isRunning = false;
        if (this.#closed.signal.aborted) return;
        // A block may have been added since the last one was complete.
        if (this.isIdle) this.#hooks.idle(this);
        else this.#begin();
      },
      (thrown) => {
        this.#isRunning = false;
        if (!this.#closed.signal.aborted) this.#hooks.failed(this, thrown);
      },
    );
  }

  async #run(): Promise<void> {
    // The swarm requests several blocks in one go: their number determines the size of the request.
    await Promise.resolve();
    for (let block = this.#blocks[0]; block; block = this.#blocks[0]) {
      if (block !== this.#filling) this.#moveTo(block);
      const bytes = await this.#read();
      this.#closed.signal.throwIfAborted();
      if (bytes) this.#distribute(bytes);
    }
  }

  /** Moves to a block: along the present response if the block is near, else with a new request. */
  #moveTo({ start }: SeedBlock): void {
    this.#filling = undefined;
    this.#filled = 0;
    const gap = start - this.#position;
    if (this.#response && gap >= 0 && gap <= SKIP_BYTES && start < this.#response.end) return;
    if (gap === 0) return;
    if (this.#response && this.#position < this.#response.end) this.#source.aborted();
    this.#disconnect();
    this.#nextBytes = 0;
    this.#position = start;
  }

  /** Returns some bytes from the position on; undefined if the connection was lost and must be opened again. */
  async #read(): Promise<Uint8Array | undefined> {
    if (this.#rest) return this.#rest;
    const stretch = this.#map.at(this.#position);
    if (stretch.kind === "zeros") return ZEROS.subarray(0, stretch.end - this.#position);
    try {
      if (this.#response && this.#position >= this.#response.end) {
        this.#source.completed();
        this.#disconnect();
      }
      this.#response ??= await this.#request();
      const { done, value } = await this.#response.reader.read();
      if (done) throw new SeedFault("later", "the server closed the connection too early");
      this.#hasProgress = true;
      return value.subarray(0, this.#response.end - this.#position);
    } catch (thrown) {
      this.#disconnect();
      const fault = fetchFault(thrown);
      const retry = fault instanceof SeedFault ? fault.retry : undefined;
      if (retry === "missing" && stretch.kind === "file") this.#map.markMissing(stretch.fileIndex);
      if (this.#closed.signal.aborted || !this.#hasProgress || retry !== "later") throw fault;
      // A lost connection that has delivered data is opened again at once.
      this.#hasProgress = false;
      return undefined;
    }
  }

  #request(): Promise<SeedResponse> {
    const stretch = this.#map.at(this.#position);
    const reach = this.#blocks[this.#blocks.length - 1]?.end ?? this.#position;
    const bytes = this.#nextBytes === 0 ? this.#source.firstBytes : this.#nextBytes;
    const end = Math.min(stretch.end, Math.max(this.#position + bytes, reach));
    this.#nextBytes = Math.min(MAX_BYTES, 4 * bytes);
    return this.#source.open(stretch, this.#position, end, this.#closed.signal);
  }

  /** Copies bytes into the blocks; keeps those after the last block. */
  #distribute(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const block = this.#blocks[0];
      if (!block) break;
      if (block !== this.#filling) {
        const gap = block.start - this.#position;
        // The block is behind, or too far ahead: the next step moves there.
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
    if (!this.#buffer || this.#buffer.length < length) this.#buffer = new Uint8Array(length);
    const part = bytes.subarray(0, length - this.#filled);
    this.#buffer.set(part, this.#filled);
    this.#filled += part.length;
    this.#position += part.length;
    if (this.#filled === length) {
      this.#blocks.shift();
      this.#filling = undefined;
      this.#filled = 0;
      this.#hooks.arrived(block, this.#buffer.subarray(0, length));
    }
    return part.length;
  }

  #disconnect(): void {
    this.#response?.close();
    this.#response = undefined;
    this.#rest = undefined;
  }
}
