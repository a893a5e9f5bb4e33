import type { Bits } from "../base/bits.ts";
import type { Files } from "../runtime/contract.ts";
import type { ContentFolder } from "./cache-contract.ts";
import { type CacheLayout, offsetInSegment, segmentOf } from "./cache-layout.ts";
import { OpenSegments } from "./open-segments.ts";
import type { MemoryPiece } from "./piece-memory.ts";

/**
 * Read-only view of one content in a disk cache that another process owns. That process may evict any piece at any time;
 * a piece that cannot be read in full counts as absent.
 */
export class GuestFolder implements ContentFolder {
  readonly keeps = false;
  /** The other process accounts for the space. */
  readonly bytes = 0;
  readonly #layout: CacheLayout;
  readonly #pieces: Bits;
  readonly #open: OpenSegments;

  /** `pieces` comes from the other process's record. */
  constructor(files: Files, path: string, layout: CacheLayout, pieces: Bits) {
    this.#layout = layout;
    this.#pieces = pieces;
    this.#open = new OpenSegments(files, path);
  }

  serve(): void {}

  has(piece: number): boolean {
    return this.#pieces.has(piece);
  }

  /** Pieces stay in memory. */
  save(entry: MemoryPiece): void {
    entry.state = "alone";
  }

  load(piece: number, into: Uint8Array<ArrayBuffer>): Promise<void> {
    const at = offsetInSegment(this.#layout, piece);
    return this.#open.use(segmentOf(this.#layout, piece), (file) => file.read(at, into));
  }

  forget(piece: number): void {
    this.#pieces.clear(piece);
  }

  close(): Promise<void> {
    return this.#open.close();
  }
}
