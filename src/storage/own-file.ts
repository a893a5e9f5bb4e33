import type { Files, OpenFile } from "../runtime/contract.ts";
import type { Info } from "../wire/torrent/metainfo.ts";
import type { ContentFolder } from "./cache-contract.ts";
import type { MemoryPiece } from "./piece-memory.ts";

/**
 * The pieces of content that is one complete file of this machine, outside the cache. They are verified when they are read, like those
 * of the cache; nothing is written.
 */
export class OwnFile implements ContentFolder {
  readonly keeps = false;
  /** Nothing of it is in the cache. */
  readonly bytes = 0;
  readonly #file: OpenFile;
  readonly #pieceLength: number;
  readonly #damaged = new Set<number>();

  private constructor(file: OpenFile, pieceLength: number) {
    this.#file = file;
    this.#pieceLength = pieceLength;
  }

  /** Opens the file at `path`, which is the only file of the content. */
  static async open(files: Files, path: string, { pieceLength }: Info): Promise<OwnFile> {
    return new OwnFile(await files.open(path), pieceLength);
  }

  serve(): void {}

  has(piece: number): boolean {
    return !this.#damaged.has(piece);
  }

  /** A damaged piece that a peer sent stays in memory. */
  save(entry: MemoryPiece): void {
    entry.state = "alone";
  }

  load(piece: number, into: Uint8Array<ArrayBuffer>): Promise<void> {
    return this.#file.read(piece * this.#pieceLength, into);
  }

  forget(piece: number): void {
    this.#damaged.add(piece);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
