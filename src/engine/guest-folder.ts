import type { Bits } from "../base/bits.ts";
import type { Files } from "../runtime/contract.ts";
import type { ContentFolder } from "./cache-folder.ts";
import { type CacheLayout, offsetInSegment, segmentOf } from "./cache-layout.ts";
import { OpenSegments } from "./open-segments.ts";
import type { MemoryPiece } from "./piece-memory.ts";

/**
 * What the disk cache of another program has of one content: it is read and nothing else. That program may give any of
 * it up meanwhile, so what does not come back whole is simply not there.
 */
export class GuestFolder implements ContentFolder {
  readonly keeps = false;
  /** Nothing of it is ours. */
  readonly bytes = 0;
  readonly #layout: CacheLayout;
  readonly #pieces: Bits;
  readonly #open: OpenSegments;

  /** `pieces` are those of the other program's record. */
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
